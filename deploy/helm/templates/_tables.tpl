{{- /* The role of the gateways in the database. */ -}}
{{- define "scoregate.role" -}}
{{ regexFind "//[^@/]*@" .Values.database.url | trimAll "/@" }}
{{- end -}}

{{- /* The tables' job: the same database, by the role that owns the tables. */ -}}
{{- define "scoregate.tablesEnv" -}}
SCOREGATE_STORE_URL: {{ regexReplaceAll "^postgresql://[^@/]*@" .Values.database.url (printf "postgresql://%s@" .Values.database.owner) }}
{{ include "scoregate.databaseEnv" . }}
{{- range $name, $value := .Values.env }}
{{- if hasPrefix "SCOREGATE_STORE_" $name }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* A container of the tables' job. */ -}}
{{- define "scoregate.tablesContainer" -}}
{{ include "scoregate.program" . }}
env:
  {{- include "scoregate.variables" (include "scoregate.tablesEnv" . | fromYaml) | trim | nindent 2 }}
resources:
  requests:
    cpu: 100m
    memory: 64Mi
  limits:
    memory: 256Mi
volumeMounts:
  - name: database
    mountPath: /etc/scoregate/database
    readOnly: true
{{- end -}}

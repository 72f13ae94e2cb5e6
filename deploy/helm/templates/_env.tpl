{{- /* The variables of a dictionary, in the order of their names. */ -}}
{{- define "scoregate.variables" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{- /* The names of the side port's service. IP addresses, which the kubelet and pod discovery use, need not be listed. */ -}}
{{- define "scoregate.hosts" -}}
{{- $side := printf "%s-side" (include "scoregate.fullname" .) -}}
{{- $in := printf "%s.%s" $side .Release.Namespace -}}
{{- $all := list $side $in (printf "%s.svc" $in) (printf "%s.svc.cluster.local" $in) -}}
{{- if eq .Values.mode "single" -}}
{{- $all = append $all (printf "%s-0.%s.svc.cluster.local" (include "scoregate.fullname" .) $in) -}}
{{- end -}}
{{ join "," $all }}
{{- end -}}

{{- /* The settings of the chart's facts. */ -}}
{{- define "scoregate.env" -}}
SCOREGATE_CONFIG: /etc/scoregate/settings/scoregate.toml
TMPDIR: /var/lib/scoregate
SCOREGATE_LISTEN: 0.0.0.0:8080
SCOREGATE_DATA_DIR: /var/lib/scoregate
# The kubelet and Prometheus connect from outside the pod, so loopback is not enough. The network policy allows no other
# clients, and everything except metrics and health requires the token.
SCOREGATE_ADMIN_LISTEN: 0.0.0.0:9464
SCOREGATE_ADMIN_HOSTS: {{ include "scoregate.hosts" . }}
{{- if has "admin-token" .Values.secret.files }}
SCOREGATE_ADMIN_TOKEN_FILE: /etc/scoregate/secrets/admin-token
{{- end }}
{{- if eq .Values.upstream "built-in" }}
SCOREGATE_UPSTREAM: built-in
{{- else if .Values.upstream }}
SCOREGATE_UPSTREAM_URL: {{ .Values.upstream }}
{{- end }}
{{- if has "upstream-credential" .Values.secret.files }}
SCOREGATE_UPSTREAM_CREDENTIAL_FILE: /etc/scoregate/secrets/upstream-credential
{{- end }}
# The ingress terminates TLS.
SCOREGATE_SERVER_PLAIN_HTTP: true
SCOREGATE_SERVER_SHUTDOWN_TIMEOUT: {{ .Values.shutdownTimeoutSeconds }}s
SCOREGATE_LOG_FORMAT: json
{{- if eq .Values.mode "fleet" }}
SCOREGATE_STORE_URL: {{ .Values.database.url }}
SCOREGATE_STORE_GATEWAYS: {{ add1 (ternary .Values.autoscaling.maxReplicas .Values.replicas .Values.autoscaling.enabled) }}
{{ include "scoregate.databaseEnv" . }}
{{- end }}
{{- end -}}

{{- /* The files of the database that the gateways and the tables' job have. */ -}}
{{- define "scoregate.databaseEnv" -}}
{{- if has "password" .Values.database.files -}}
SCOREGATE_STORE_PASSWORD_FILE: /etc/scoregate/database/password
{{ end -}}
{{- if has "ca.pem" .Values.database.files -}}
SCOREGATE_STORE_CA_FILE: /etc/scoregate/database/ca.pem
{{- end -}}
{{- end -}}

{{- define "scoregate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- /* The labels that select the gateways. */ -}}
{{- define "scoregate.selector" -}}
app.kubernetes.io/name: scoregate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* The labels that select pods of a job. No selector of the gateways includes them. */ -}}
{{- define "scoregate.jobSelector" -}}
app.kubernetes.io/name: scoregate-{{ .job }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end -}}

{{- /* The labels of an object, besides those above. */ -}}
{{- define "scoregate.labels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* The metadata of an object of the gateways: its name ends with `suffix`. */ -}}
{{- define "scoregate.metadata" -}}
name: {{ include "scoregate.fullname" .root }}{{ .suffix }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "scoregate.selector" .root | nindent 2 }}
  {{- include "scoregate.labels" .root | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- /* The same for an object of a job. */ -}}
{{- define "scoregate.jobMetadata" -}}
name: {{ include "scoregate.fullname" .root }}-{{ .job }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "scoregate.jobSelector" . | nindent 2 }}
  {{- include "scoregate.labels" .root | nindent 2 }}
{{- end -}}

{{- define "scoregate.image" -}}
{{- $of := .Values.image -}}
{{ $of.repository }}:{{ $of.tag | default .Chart.AppVersion }}{{ with $of.digest }}@{{ . }}{{ end }}
{{- end -}}

{{- /* Fails if the chart was packed without the files that are symbolic links in the repository, as some tools do. */ -}}
{{- define "scoregate.completeFiles" -}}
{{- if not (and (.Files.Glob "files/rules/*.yml") (.Files.Glob "files/dashboards/*.json") (.Files.Get "files/alertmanager.yml")) -}}
{{- fail "the chart lacks its rules, dashboards or alertmanager.yml, which are links in the repository: use the packaged chart" -}}
{{- end -}}
{{- end -}}

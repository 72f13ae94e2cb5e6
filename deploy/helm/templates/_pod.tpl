{{- /* What the pods of gateways and jobs may do. The program does not use the Kubernetes API. */ -}}
{{- define "scoregate.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "scoregate.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: ["ALL"]
{{- end -}}

{{- /* The image and the privileges of a container. */ -}}
{{- define "scoregate.program" -}}
image: {{ include "scoregate.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{ include "scoregate.containerSecurity" . }}
{{- end -}}

{{- define "scoregate.probes" -}}
# Keys are read at the start: a million take some seconds, and longer from a cold disk.
startupProbe:
  httpGet:
    path: /healthz
    port: side
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 60
# 503 while it starts or stops, when the runtime of the public port has stalled for 5 s, and while it cannot serve requests for
# data.
readinessProbe:
  httpGet:
    path: /readyz
    port: side
  periodSeconds: 5
  timeoutSeconds: 2
  failureThreshold: 2
# 503 once the runtime of the public port has stalled for 20 s. Overload, a failing backend and a failing database do not cause
# that.
livenessProbe:
  httpGet:
    path: /healthz
    port: side
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
{{- end -}}

{{- define "scoregate.preStopSeconds" -}}
{{ default (ternary 10 5 (eq .Values.mode "fleet")) .Values.preStopSeconds }}
{{- end -}}

{{- /* The container of a gateway. */ -}}
{{- define "scoregate.container" -}}
name: scoregate
{{ include "scoregate.program" . }}
args: ["serve"{{ if .Values.reload }}, "--reload-on-change"{{ end }}]
env:
  {{- include "scoregate.variables" (merge (deepCopy .Values.env) (include "scoregate.env" . | fromYaml)) | trim | nindent 2 }}
ports:
  - name: http
    containerPort: 8080
  - name: side
    containerPort: 9464
lifecycle:
  preStop:
    # Load balancers may send requests to a terminating pod until they have noticed; it serves them for this time. From SIGTERM
    # on it accepts no connection. The image has no shell for `sleep`.
    sleep:
      seconds: {{ include "scoregate.preStopSeconds" . }}
{{ include "scoregate.probes" . }}
resources:
  {{- $ephemeral := dict "requests" (dict "ephemeral-storage" .Values.persistence.ephemeralSize) }}
  {{- ternary (merge (deepCopy .Values.resources) $ephemeral) .Values.resources (eq .Values.mode "fleet") | toYaml | nindent 2 }}
volumeMounts:
  - name: data
    mountPath: /var/lib/scoregate
  # A directory, not a subPath: a subPath would never show a change.
  - name: settings
    mountPath: /etc/scoregate/settings
    readOnly: true
  {{- if .Values.secret.files }}
  - name: secrets
    mountPath: /etc/scoregate/secrets
    readOnly: true
  {{- end }}
  {{- if eq .Values.mode "fleet" }}
  - name: database
    mountPath: /etc/scoregate/database
    readOnly: true
  {{- end }}
  {{- with .Values.pod.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "scoregate.items" -}}
{{- range . }}
- key: {{ . }}
  path: {{ . }}
{{- end }}
{{- end -}}

{{- define "scoregate.volumes" -}}
- name: settings
  configMap:
    name: {{ include "scoregate.fullname" . }}
{{- if .Values.secret.files }}
- name: secrets
  secret:
    secretName: {{ .Values.secret.name | default (include "scoregate.fullname" .) }}
    defaultMode: 0440
    items:
      {{- include "scoregate.items" .Values.secret.files | trim | nindent 6 }}
{{- end }}
{{- if eq .Values.mode "fleet" }}
# Lost with the pod, and all of it is replaceable: stored documents, which a new pod requests from the backend; the copy of the
# keys, with which a container starts while the database is unreachable; and the share of grace with the units served on it. A
# restarted container of the same pod continues it. With the pod the share is lost until midnight.
- name: data
  emptyDir:
    sizeLimit: {{ .Values.persistence.ephemeralSize }}
- name: database
  secret:
    secretName: {{ .Values.database.secret }}
    defaultMode: 0440
    items:
      {{- include "scoregate.items" .Values.database.files | trim | nindent 6 }}
{{- end }}
{{- with .Values.pod.volumes }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}

{{- define "scoregate.annotations" -}}
{{- if not .Values.reload }}
checksum/settings: {{ .Values.settings | sha256sum }}
{{- end }}
{{- if not .Values.monitoring.podMonitor.enabled }}
prometheus.io/scrape: "true"
prometheus.io/port: "9464"
prometheus.io/path: /metrics
{{- end }}
{{- with .Values.pod.annotations }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}

{{- /* The pod's template of both modes. */ -}}
{{- define "scoregate.pod" -}}
metadata:
  labels:
    {{- include "scoregate.selector" . | nindent 4 }}
    {{- with .Values.pod.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with include "scoregate.annotations" . | trim }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
spec:
  {{- include "scoregate.podSecurity" . | nindent 2 }}
  # The preStop sleep, twice server.shutdown_timeout, and time to return leased quota units and record them: in a fleet two
  # transactions of store.timeout.
  terminationGracePeriodSeconds: {{ add (include "scoregate.preStopSeconds" .) (mul 2 .Values.shutdownTimeoutSeconds) 10 }}
  {{- if eq .Values.mode "fleet" }}
  {{- include "scoregate.spread" . | nindent 2 }}
  {{- end }}
  containers:
    - {{ include "scoregate.container" . | nindent 6 | trim }}
  volumes:
    {{- include "scoregate.volumes" . | nindent 4 }}
  {{- with .Values.pod.spec }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "scoregate.spread" -}}
topologySpreadConstraints:
  # The loss of a node stops one of three pods. Cordoned nodes do not count, so that a drain is not blocked.
  - topologyKey: kubernetes.io/hostname
    maxSkew: 1
    whenUnsatisfiable: DoNotSchedule
    nodeTaintsPolicy: Honor
    labelSelector:
      matchLabels:
        {{- include "scoregate.selector" . | nindent 8 }}
    # Pods of the previous version are about to stop and do not count either.
    matchLabelKeys: ["pod-template-hash"]
  - topologyKey: topology.kubernetes.io/zone
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "scoregate.selector" . | nindent 8 }}
    matchLabelKeys: ["pod-template-hash"]
{{- end -}}

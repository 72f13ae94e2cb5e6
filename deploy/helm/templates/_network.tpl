{{- define "scoregate.dnsRule" -}}
- to:
    {{- toYaml .Values.networkPolicy.dns | nindent 4 }}
  ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
{{- end -}}

{{- /* A rule for connections to `peers` on one port. */ -}}
{{- define "scoregate.rule" -}}
- to:
    {{- toYaml .peers | nindent 4 }}
  ports:
    - port: {{ .port }}
      protocol: TCP
{{- end -}}

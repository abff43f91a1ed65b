{{- define "unghost.labels" -}}
app.kubernetes.io/name: unghost
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "unghost.selector" -}}
app.kubernetes.io/name: unghost
app.kubernetes.io/component: agent
{{- end }}

{{- define "unghost.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Where the agent listens: loopback; node: also the node's address, with a token; open: the same without one. */}}
{{- define "unghost.listen" -}}
{{- if ne .Values.listen "auto" -}}
{{ .Values.listen }}
{{- else if or .Values.tokenSecret .Values.podMonitor.enabled .Values.serviceMonitor.enabled -}}
node
{{- else -}}
loopback
{{- end -}}
{{- end }}

{{/* The Secret with the token; empty where none is required. */}}
{{- define "unghost.tokenSecret" -}}
{{- if .Values.tokenSecret -}}
{{ .Values.tokenSecret }}
{{- else if eq (include "unghost.listen" .) "node" -}}
unghost-token
{{- end -}}
{{- end }}

{{/* The configuration file of the agent. */}}
{{- define "unghost.config" -}}
{{- $fleet := merge (dict) (.Values.agent.fleet | default dict) (dict "namespace" .Release.Namespace) -}}
{{- $agent := merge (dict "fleet" $fleet) .Values.agent -}}
{{- if eq .Values.mode "observe" }}{{ $_ := set $agent "observeOnly" true }}{{ end -}}
{{- with .Values.classes }}{{ $_ := set $agent "classes" . }}{{ end -}}
{{- if include "unghost.tokenSecret" . }}{{ $_ := set $agent "tokenFile" "/etc/unghost-token/token" }}{{ end -}}
{{ toYaml (dict "agent" $agent) }}
{{- end }}

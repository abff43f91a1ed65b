{{/* The beginning of each object's name. The label app.kubernetes.io/name stays: kubectl unghost finds the agents by it. */}}
{{- define "unghost.fullname" -}}
{{- .Values.fullnameOverride | default .Values.nameOverride | default "unghost" | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "unghost.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (printf "%s-agent" (include "unghost.fullname" .)) -}}
{{- end }}

{{- define "unghost.labels" -}}
app.kubernetes.io/name: unghost
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "unghost.selector" -}}
app.kubernetes.io/name: unghost
app.kubernetes.io/component: agent
{{- end }}

{{/* With the registry's mirror, if there is one. */}}
{{- define "unghost.image" -}}
{{- if and (contains ".example/" .Values.image.repository) (not .Values.image.digest) -}}
{{- fail (printf "image.repository is the placeholder %s, which no node can pull. Set it to where the image was pushed: --set image.repository=REGISTRY/unghost (make image builds it, docs/publish.md pushes it)" .Values.image.repository) -}}
{{- end -}}
{{- $global := .Values.global | default dict -}}
{{- $registry := .Values.image.registry | default $global.imageRegistry -}}
{{- $name := ternary (printf "%s/%s" $registry (regexReplaceAll "^[^/]*[.:][^/]*/" .Values.image.repository "")) .Values.image.repository (not (empty $registry)) -}}
{{- if .Values.image.digest -}}
{{ $name }}@{{ .Values.image.digest }}
{{- else -}}
{{ $name }}:{{ .Values.image.tag | default .Chart.AppVersion }}
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
{{ include "unghost.fullname" . }}-token
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

{{- define "octavo-gateway.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 53 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "octavo-gateway.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "octavo-gateway.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{ include "octavo-gateway.selector" . }}
{{- end }}

{{- define "octavo-gateway.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "octavo-gateway.checked" -}}
{{- if and (eq .Values.mode "cluster") (or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1)) }}{{ fail "mode cluster: one process scales the Deployments; set replicaCount to 1 and leave autoscaling off" }}{{ end -}}
{{- end }}

{{- define "octavo-gateway.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "octavo.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 53 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "octavo.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "octavo.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{ include "octavo.selector" . }}
{{- end }}

{{- define "octavo.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "octavo.scales" -}}
{{- $a := .Values.autoscaling -}}
{{- if and $a.hpa.enabled $a.keda.enabled }}{{ fail "autoscaling: hpa and keda both scale the Deployment; enable one" }}{{ end -}}
{{- if gt (int $a.minReplicas) (int $a.maxReplicas) }}{{ fail "autoscaling: minReplicas is above maxReplicas" }}{{ end -}}
{{- if and $a.hpa.enabled (eq (int $a.minReplicas) 0) }}{{ fail "autoscaling: an HPA does not scale to zero; use keda" }}{{ end -}}
{{- if or $a.hpa.enabled $a.keda.enabled }}true{{ end -}}
{{- end }}

{{- define "octavo.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

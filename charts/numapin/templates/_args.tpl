{{/* The value that stands for an argument which the chart gives; none for those that are fixed. */}}
{{- define "numapin.valueOf" -}}
{{- get (dict "log-format" "logFormat" "shards" "operator.shards" "annotate-pods" "cpuAnnotation.enabled"
  "annotate-refusals" "refusals.annotate" "publish-topologies" "nodeResourceTopology.enabled"
  "realtime-priority" "nodes.realtimePriority" "cri-socket" "host.runtimeSocket"
  "pod-resources-socket" "podResources.enabled" "serve-pod-resources" "podResources.serve"
  "systemd-socket" "systemd.enabled" "cgroup-root" "host.cgroupRoot"
  "cdi-dir" "host.cdiDir" "kubelet-state-dir" "host.kubeletDir" "cpu-metrics" "cpuMetrics.enabled"
  "interrupts" "cpuMetrics.enabled" "irq-dir" "interrupts.enabled" "workqueue-dir" "interrupts.enabled"
  "resctrl-dir" "resctrl.enabled") . }}
{{- end }}

{{/*
The arguments of a component's program: the chart's, and the user's, which override none of these.
Takes a list: the root, the component's name, the chart's arguments as YAML.
*/}}
{{- define "numapin.args" -}}
{{- $name := index . 1 }}
{{- $own := get (index . 0).Values $name }}
{{- $given := dict }}
{{- range fromYamlArray (index . 2) }}
  {{- $_ := set $given (regexFind "^--[a-z0-9-]+" . | trimPrefix "--" | trimPrefix "no-") . }}
{{- end }}
{{- range $own.extraArgs }}
  {{- $flag := regexFind "^--[a-z0-9-]+" . | trimPrefix "--" | trimPrefix "no-" }}
  {{- if hasKey $given $flag }}
    {{- $value := include "numapin.valueOf" $flag | default "none: it fits the rest of the chart" }}
    {{- fail (printf "%s.extraArgs: %s would override %s of the chart; the value that changes it: %s" $name . (get $given $flag) $value) }}
  {{- end }}
{{- end }}
{{- range $own.extraEnv }}
  {{- if has .name (list "NODE_NAME" "POD_NAMESPACE") }}
    {{- fail (printf "%s.extraEnv: %s is set by the chart" $name .name) }}
  {{- end }}
  {{- $flag := .name | trimPrefix "NUMAPIN_" | lower | replace "_" "-" }}
  {{- if and (hasPrefix "NUMAPIN_" .name) (hasKey $given $flag) }}
    {{- $value := include "numapin.valueOf" $flag | default "none: it fits the rest of the chart" }}
    {{- fail (printf "%s.extraEnv: %s would have no effect beside %s of the chart; the value that changes it: %s" $name .name (get $given $flag) $value) }}
  {{- end }}
{{- end }}
{{- index . 2 }}
{{- range $own.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* The arguments of the operator that the chart gives. */}}
{{- define "numapin.operatorArgs" -}}
- --namespace=$(POD_NAMESPACE)
- --health-address=0.0.0.0:8080
- --log-format={{ .Values.logFormat }}
{{- if not .Values.refusals.annotate }}
- --no-annotate-refusals
{{- end }}
{{- if gt (int .Values.operator.shards) 1 }}
- --shards={{ .Values.operator.shards }}
{{- end }}
{{- if .Values.cpuAnnotation.enabled }}
- --annotate-pods
{{- end }}
{{- if .Values.nodeResourceTopology.enabled }}
- --publish-topologies
{{- end }}
{{- end }}

{{/* The arguments of the enforcer that the chart gives. */}}
{{- define "numapin.enforcerArgs" -}}
- --cgroupfs=/host/sys/fs/cgroup
- --cri-socket={{ include "numapin.runtimeMount" . }}/{{ include "numapin.runtimeSocket" . | base }}
- --kubelet-state-dir=/host/kubelet
- --cdi-dir=/host/cdi
- --nri-socket=/host/run/nri/nri.sock
{{- if .Values.podResources.enabled }}
- --pod-resources-socket=/host/pod-resources/kubelet.sock
{{- if .Values.podResources.serve }}
- --serve-pod-resources=/run/numapin/pod-resources/kubelet.sock
{{- end }}
{{- end }}
- --state-dir=/var/lib/numapin
- --run-dir=/run/numapin
- --namespace=$(POD_NAMESPACE)
- --realtime-priority={{ .Values.nodes.realtimePriority }}
- --health-address=0.0.0.0:8081
- --log-format={{ .Values.logFormat }}
{{- if .Values.systemd.enabled }}
- --systemd-socket=/host/run/dbus/system_bus_socket
{{- end }}
{{- if .Values.cpuMetrics.enabled }}
- --cpu-metrics
- --interrupts=/host/interrupts
{{- end }}
{{- if .Values.interrupts.enabled }}
- --irq-dir=/host/irq
- --workqueue-dir=/host/workqueue
{{- end }}
{{- if .Values.resctrl.enabled }}
- --resctrl-dir=/host/fs/resctrl
{{- end }}
{{- include "numapin.cgroupRoot" . }}
{{- end }}

{{/* The arguments of the standby that the chart gives. */}}
{{- define "numapin.standbyArgs" -}}
- --cgroupfs=/host/sys/fs/cgroup
- --kubelet-state-dir=/host/kubelet
- --state-dir=/var/lib/numapin
- --run-dir=/run/numapin
- --realtime-priority={{ .Values.nodes.realtimePriority }}
- --ready-file=/tmp/ready
- --log-format={{ .Values.logFormat }}
{{- include "numapin.cgroupRoot" . }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "numapin.labels" -}}
app.kubernetes.io/name: numapin
{{ include "numapin.releaseLabels" . }}
{{- end }}

{{/* Those that say which release an object belongs to. */}}
{{- define "numapin.releaseLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Labels that select the pods of one component; they can never change. Takes its name. */}}
{{- define "numapin.selector" -}}
app.kubernetes.io/name: numapin
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* An image's name. Takes a list: the root and the image's values. */}}
{{- define "numapin.image" -}}
{{- $image := (index . 0).Values.image }}
{{- $own := index . 1 }}
{{- with $image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ $own.repository }}
{{- if $own.digest }}@{{ $own.digest }}{{ else }}:{{ $image.tag | default (index . 0).Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The folder on the host that holds the container runtime's socket. */}}
{{- define "numapin.runtimeFolder" -}}
{{- get (dict "crio" "/run/crio" "k0s" "/run/k0s" "k3s" "/run/k3s/containerd" "microk8s" "/var/snap/microk8s/common/run") .Values.distribution | default "/run/containerd" }}
{{- end }}

{{/* The kubelet's root folder on the host. */}}
{{- define "numapin.kubeletFolder" -}}
{{- get (dict "k0s" "/var/lib/k0s/kubelet" "microk8s" "/var/snap/microk8s/common/var/lib/kubelet") .Values.distribution | default "/var/lib/kubelet" }}
{{- end }}

{{/* The name of the runtime in the paths inside the enforcer. */}}
{{- define "numapin.runtime" -}}
{{- eq .Values.distribution "crio" | ternary "crio" "containerd" }}
{{- end }}

{{/* What every pod on a node has in common. */}}
{{- define "numapin.nodePod" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
nodeSelector:
  kubernetes.io/os: linux
  {{- with .Values.nodes.nodeSelector }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
priorityClassName: {{ .Values.nodes.priorityClassName | quote }}
{{- with .Values.nodes.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
# cgroup v1 lists a process only to those who see its PID. Without this every container would seem
# to have no process, and none would count as exclusive.
hostPID: true
securityContext:
  seccompProfile:
    type: RuntimeDefault
  {{- if or .Values.selinux.enabled (eq .Values.distribution "crio") }}
  seLinuxOptions:
    type: spc_t
  {{- end }}
{{- end }}

{{/* The rights of a container that writes the host's cgroups; manifests/base says why. */}}
{{- define "numapin.nodeRights" -}}
runAsUser: 0
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  add: [DAC_OVERRIDE, SYS_NICE]
{{- end }}

{{/* Arguments that the distribution and the user add. Takes a list: the root and more arguments. */}}
{{- define "numapin.moreArgs" -}}
{{- if eq (index . 0).Values.distribution "kind" }}
- --cgroup-root=/kubelet
{{- end }}
{{- range index . 1 }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* Volumes of enforcer and standby. */}}
{{- define "numapin.nodeVolumes" -}}
- name: cgroup
  hostPath:
    path: /sys/fs/cgroup
    type: Directory
# Only these two files: the rest of the kubelet's folder contains the secrets of pods.
- name: cpu-manager-state
  hostPath:
    path: {{ include "numapin.kubeletFolder" . }}/cpu_manager_state
    type: File
- name: memory-manager-state
  hostPath:
    path: {{ include "numapin.kubeletFolder" . }}/memory_manager_state
    type: File
- name: state
  hostPath:
    path: /var/lib/numapin
    type: DirectoryOrCreate
# In memory: here the enforcer shows the standby that it makes progress.
- name: run
  hostPath:
    path: /run/numapin
    type: DirectoryOrCreate
- name: tmp
  emptyDir: {}
{{- end }}

{{/* Annotations of a pod that Prometheus scrapes: its own, and where /metrics is. */}}
{{- define "numapin.scraped" -}}
{{- $found := dict "prometheus.io/scrape" "true" "prometheus.io/port" (index . 1) "prometheus.io/path" "/metrics" -}}
{{- toYaml (merge (deepCopy (index . 0)) $found) -}}
{{- end -}}

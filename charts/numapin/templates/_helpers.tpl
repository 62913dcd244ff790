{{/* Labels of every object. */}}
{{- define "numapin.labels" -}}
app.kubernetes.io/name: numapin
{{ include "numapin.releaseLabels" . }}
{{- end }}

{{/* The same, and over them some of the user's. Takes a list: the root and these. */}}
{{- define "numapin.labelsAnd" -}}
{{- $all := include "numapin.labels" (index . 0) | fromYaml }}
{{- range $key, $value := index . 1 }}{{ $_ := set $all $key $value }}{{ end }}
{{- toYaml $all }}
{{- end }}

{{/* Those that say which release an object belongs to. */}}
{{- define "numapin.releaseLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What the names of objects begin with. */}}
{{- define "numapin.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride }}
{{- else if not .Values.nameOverride }}
{{- "numapin" }}
{{- else if contains .Values.nameOverride .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The name of a component's ServiceAccount. Takes a list: the root and the component's name. */}}
{{- define "numapin.account" -}}
{{- $own := get (index . 0).Values (index . 1) }}
{{- $own.serviceAccount.name | default (printf "%s-%s" (include "numapin.fullname" (index . 0)) (index . 1)) }}
{{- end }}

{{/* Nothing, or an error: by its account the admission policies know which component asks. */}}
{{- define "numapin.differentAccounts" -}}
{{- $names := list }}
{{- range $name := list "operator" "enforcer" "standby" }}
{{- $account := include "numapin.account" (list $ $name) }}
{{- if has $account $names }}
{{- fail (printf "%s.serviceAccount.name: %s is the account of another component" $name $account) }}
{{- end }}
{{- $names = append $names $account }}
{{- end }}
{{- end }}

{{/* A component's ServiceAccount, as an object. Takes a list: the root and the component's name. */}}
{{- define "numapin.accountObject" -}}
{{- $root := index . 0 }}
{{- $own := get $root.Values (index . 1) }}
{{- if $own.serviceAccount.create -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "numapin.account" . | quote }}
  namespace: {{ $root.Release.Namespace | quote }}
  labels:
    {{- include "numapin.labels" $root | nindent 4 }}
  {{- with $own.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Whether a request is one of a component's account, in CEL. Takes a list: the root and the name. */}}
{{- define "numapin.isAccount" -}}
{{- $name := include "numapin.account" . }}
{{- if eq $name (printf "numapin-%s" (index . 1)) -}}
request.userInfo.username.startsWith("system:serviceaccount:")
&& request.userInfo.username.split(":")[3].contains("{{ $name }}")
{{- else -}}
request.userInfo.username == "system:serviceaccount:{{ (index . 0).Release.Namespace }}:{{ $name }}"
{{- end }}
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

{{/* The container runtime's socket on the host. */}}
{{- define "numapin.runtimeSocket" -}}
{{- .Values.host.runtimeSocket | default (get (dict "crio" "/run/crio/crio.sock" "k0s" "/run/k0s/containerd.sock" "k3s" "/run/k3s/containerd/containerd.sock" "microk8s" "/var/snap/microk8s/common/run/containerd.sock") .Values.distribution) | default "/run/containerd/containerd.sock" }}
{{- end }}

{{/* The kubelet's root folder on the host. */}}
{{- define "numapin.kubeletFolder" -}}
{{- .Values.host.kubeletDir | default (get (dict "k0s" "/var/lib/k0s/kubelet" "microk8s" "/var/snap/microk8s/common/var/lib/kubelet") .Values.distribution) | default "/var/lib/kubelet" }}
{{- end }}

{{/* Where the folder of that socket is inside the enforcer. */}}
{{- define "numapin.runtimeMount" -}}
/host/run/{{ include "numapin.runtimeSocket" . | base | trimSuffix ".sock" }}
{{- end }}

{{/* The argument for a kubelet with a cgroupRoot. */}}
{{- define "numapin.cgroupRoot" -}}
{{- with .Values.host.cgroupRoot | default (get (dict "kind" "/kubelet") .Values.distribution) }}
- --cgroup-root={{ . }}
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

{{/* Annotations of pods that Prometheus scrapes. Takes a list: the root, the component, its port. */}}
{{- define "numapin.scraped" -}}
{{- $found := dict "prometheus.io/scrape" "true" "prometheus.io/port" (index . 2) "prometheus.io/path" "/metrics" -}}
{{- toYaml (merge (include "numapin.podValues" . | fromYaml).podAnnotations $found) -}}
{{- end -}}

{{/* What operator and enforcer reach, as rules of a NetworkPolicy. */}}
{{- define "numapin.egress" -}}
- ports:
    {{- range .Values.networkPolicies.egressPorts }}
    - protocol: TCP
      port: {{ . }}
    {{- else }}
    - protocol: TCP
    {{- end }}
    # A resolver, where the kubeconfig or a proxy is named by its host name.
    - protocol: UDP
      port: 53
{{- end }}

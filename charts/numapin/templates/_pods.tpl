{{/* What the chart itself sets for the pods of a component. Takes a list: the root and its name. */}}
{{- define "numapin.podDefaults" -}}
{{- $root := index . 0 -}}
podLabels:
  {{- toYaml $root.Values.commonLabels | nindent 2 }}
{{- if eq (index . 1) "operator" }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "numapin.selector" "operator" | nindent 14 }}
{{- else if or $root.Values.selinux.enabled (eq $root.Values.distribution "crio") }}
podSecurityContext:
  seLinuxOptions:
    type: {{ $root.Values.selinux.type }}
{{- end }}
{{- end }}

{{/*
What is set for the pods of a component, as YAML: what the chart sets, over it for those of enforcer and
standby what `nodes` says, over it what the component's values say. Takes a list: the root and its name.
*/}}
{{- define "numapin.podValues" -}}
{{- $values := (index . 0).Values }}
{{- $own := get $values (index . 1) }}
{{- $found := include "numapin.podDefaults" . | fromYaml }}
{{- range $layer := eq (index . 1) "operator" | ternary (list $own) (list $values.nodes $own) }}
  {{- range $name, $value := $layer }}
    {{- $before := get $found $name }}
    {{- if and (kindIs "map" $value) (kindIs "map" $before) }}
      {{- range $key, $one := $value }}{{ $_ := set $before $key $one }}{{ end }}
    {{- else if or $value (not (hasKey $found $name)) }}
      {{- $_ := set $found $name (kindIs "map" $value | ternary (deepCopy $value) $value) }}
    {{- end }}
  {{- end }}
{{- end }}
{{- toYaml $found }}
{{- end }}

{{/* Labels of a component's pods. Takes a list: the root and its name. */}}
{{- define "numapin.podLabels" -}}
{{- include "numapin.selector" (index . 1) }}
{{- with (include "numapin.podValues" . | fromYaml).podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What the pods of all components have in common. Takes a list: the root and its name. */}}
{{- define "numapin.pod" -}}
{{- $found := include "numapin.podValues" . | fromYaml -}}
serviceAccountName: {{ include "numapin.account" . | quote }}
{{- with concat (index . 0).Values.image.pullSecrets $found.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
nodeSelector:
  kubernetes.io/os: linux
  {{- with $found.nodeSelector }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- range $name := list "tolerations" "affinity" }}
{{- with get $found $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with $found.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What every pod on a node has in common. Takes a list: the root and the component's name. */}}
{{- define "numapin.nodePod" -}}
{{- include "numapin.pod" . }}
priorityClassName: {{ (include "numapin.podValues" . | fromYaml).priorityClassName | quote }}
{{- if (index . 0).Values.nodes.hostPID }}
# cgroup v1 lists a process only to those who see its PID. Without this every container would seem
# to have no process, and none would count as exclusive.
hostPID: true
{{- end }}
{{- end }}

{{/* The rights of a component's container. Takes a list: the root and the component's name. */}}
{{- define "numapin.rights" -}}
{{- $found := (include "numapin.podValues" . | fromYaml).securityContext }}
{{- if and (eq (index . 1) "enforcer") (index . 0).Values.partitions.enabled }}
{{- $rights := $found.capabilities | default dict }}
{{- $_ := set $rights "add" (append ($rights.add | default list) "SYS_ADMIN") }}
{{- $_ := set $found "capabilities" $rights }}
{{- end }}
{{- toYaml $found }}
{{- end }}

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/cpuset"
)

type ready struct{}

func (ready) AddSource(string) {}
func (ready) AllReady() bool   { return true }

type noStatus struct{}

func (noStatus) GetPodStatus(types.UID) (v1.PodStatus, bool) { return v1.PodStatus{}, false }

type noRuntime struct{}

func (noRuntime) UpdateContainerResources(context.Context, string, *runtimeapi.ContainerResources) error {
	return nil
}

type block struct {
	NUMANodes []int  `json:"numaNodes"`
	Resource  string `json:"resource"`
	Bytes     uint64 `json:"bytes"`
}

type binding struct {
	CPUs    string              `json:"cpus"`
	Mems    string              `json:"mems"`
	Memory  []block             `json:"memory"`
	Devices map[string][]string `json:"devices,omitempty"`
}

type result struct {
	Admitted    *bool              `json:"admitted,omitempty"`
	Reason      string             `json:"reason,omitempty"`
	Message     string             `json:"message,omitempty"`
	Containers  map[string]binding `json:"containers,omitempty"`
	Shared      string             `json:"shared"`
	Nanoseconds int64              `json:"nanoseconds,omitempty"`
}

type answered struct {
	Name  string   `json:"name"`
	Steps []result `json:"steps,omitempty"`
	Error string   `json:"error,omitempty"`
}

// managers are the kubelet's own, wired as the kubelet wires them; without devices there is no
// manager for them.
type managers struct {
	topology topologymanager.Manager
	devices  *devicemanager.ManagerImpl
	cpu      cpumanager.Manager
	memory   memorymanager.Manager
	active   []*v1.Pod
}

func (m *managers) pods() []*v1.Pod { return m.active }

func answer(ctx context.Context, asked scenario) (given answered) {
	given.Name = asked.Name
	defer func() {
		if broken := recover(); broken != nil {
			given.Steps, given.Error = nil, fmt.Sprint("the kubelet's code panicked: ", broken)
		}
	}()
	folder, err := os.MkdirTemp("", "scenario-")
	if err != nil {
		given.Error = err.Error()
		return given
	}
	defer os.RemoveAll(folder)
	m, err := start(ctx, asked, folder)
	if err != nil {
		given.Error = err.Error()
		return given
	}
	if m.devices != nil {
		defer m.devices.Stop(klog.FromContext(ctx))
	}
	for _, each := range asked.Steps {
		given.Steps = append(given.Steps, m.step(each))
	}
	return given
}

func start(ctx context.Context, asked scenario, folder string) (*managers, error) {
	info, err := asked.Topology.info()
	if err != nil {
		return nil, err
	}
	m := &managers{}
	m.topology, err = topologymanager.NewManager(
		info.Topology, topologyPolicies[asked.Policy.Topology.Policy], asked.Policy.scope(), asked.Policy.topologyOptions(len(info.Topology)))
	if err != nil {
		return nil, err
	}
	logger := klog.FromContext(ctx)
	if len(asked.Devices) > 0 {
		if err := m.startDevices(ctx, asked, info.Topology, folder); err != nil {
			return nil, err
		}
	}
	specific, err := cpuset.Parse(asked.Policy.Reserved.CPUs)
	if err != nil {
		return nil, err
	}
	count := int64(asked.Policy.Reserved.Count)
	if specific.Size() > 0 {
		count = int64(specific.Size())
	}
	reserved := v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(count, resource.DecimalSI)}
	m.cpu, err = cpumanager.NewManager(
		logger, "static", asked.Policy.cpuOptions(), time.Hour, info, specific, reserved, folder, m.topology)
	if err != nil {
		return nil, err
	}
	if err := m.cpu.Start(ctx, m.pods, ready{}, noStatus{}, noRuntime{}, containermap.NewContainerMap()); err != nil {
		return nil, err
	}
	m.topology.AddHintProvider(logger, m.cpu)
	name := asked.Policy.Memory.Policy
	if name == "" {
		name = "None"
	}
	kept, total, err := asked.Policy.reservedMemory()
	if err != nil {
		return nil, err
	}
	m.memory, err = memorymanager.NewManager(logger, name, info, total, kept, folder, m.topology)
	if err != nil {
		return nil, err
	}
	if err := m.memory.Start(ctx, m.pods, ready{}, noStatus{}, noRuntime{}, containermap.NewContainerMap()); err != nil {
		return nil, err
	}
	m.topology.AddHintProvider(logger, m.memory)
	return m, nil
}

func (m *managers) step(each step) result {
	if each.Add == nil {
		m.forget(types.UID(each.Remove))
		return result{Shared: m.shared()}
	}
	pod := each.Add
	m.active = append(m.active, pod)
	begun := time.Now()
	verdict := m.topology.Admit(&lifecycle.PodAdmitAttributes{Pod: pod})
	took := time.Since(begun)
	given := result{Admitted: &verdict.Admit, Nanoseconds: took.Nanoseconds()}
	if verdict.Admit {
		given.Containers = m.bindings(pod)
	} else {
		given.Reason, given.Message = verdict.Reason, verdict.Message
		m.forget(pod.UID)
	}
	given.Shared = m.shared()
	return given
}

func (m *managers) forget(uid types.UID) {
	var left []*v1.Pod
	for _, pod := range m.active {
		if pod.UID != uid {
			left = append(left, pod)
		}
	}
	m.active = left
	// Asking for anything makes the managers drop what inactive pods had.
	nobody := &v1.Pod{}
	m.cpu.GetPodTopologyHints(nobody)
	m.memory.GetPodTopologyHints(nobody)
	if m.devices != nil {
		m.devices.UpdateAllocatedDevices()
	}
}

func (m *managers) shared() string {
	return m.cpu.State().GetDefaultCPUSet().String()
}

func (m *managers) bindings(pod *v1.Pod) map[string]binding {
	found := map[string]binding{}
	for _, container := range append(append([]v1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...) {
		uid := string(pod.UID)
		own := binding{CPUs: m.cpu.GetExclusiveCPUs(uid, container.Name).String()}
		mems := cpuset.New()
		for _, each := range m.memory.GetMemory(uid, container.Name) {
			own.Memory = append(own.Memory, block{each.NUMAAffinity, string(each.Type), each.Size})
			mems = mems.Union(cpuset.New(each.NUMAAffinity...))
		}
		own.Mems = mems.String()
		if m.devices != nil {
			own.Devices = m.devicesOf(uid, container.Name)
		}
		if own.CPUs != "" || own.Mems != "" || len(own.Devices) > 0 {
			found[container.Name] = own
		}
	}
	return found
}

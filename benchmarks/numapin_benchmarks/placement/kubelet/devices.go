package main

import (
	"context"
	"path/filepath"
	"slices"

	_ "unsafe" // for go:linkname

	cadvisor "github.com/google/cadvisor/info/v1"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

// device is one of a plug-in; it is healthy unless that is false.
type device struct {
	ID        string  `json:"id"`
	NUMANodes []int64 `json:"numaNodes"`
	Healthy   *bool   `json:"healthy"`
}

// newDeviceManager is the constructor with a folder of our own; the exported one takes that of the
// machine's kubelet.
//
//go:linkname newDeviceManager k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newDeviceManager(logger klog.Logger, socket string, topology []cadvisor.Node, store topologymanager.Store) (*devicemanager.ManagerImpl, error)

// plugin allocates whatever it is asked for, and prefers nothing.
type plugin struct {
	api.DevicePluginClient
	resource string
}

func (p plugin) API() api.DevicePluginClient { return p }
func (p plugin) Resource() string            { return p.resource }
func (p plugin) SocketPath() string          { return "" }

func (p plugin) GetDevicePluginOptions(context.Context, *api.Empty, ...grpc.CallOption) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p plugin) Allocate(context.Context, *api.AllocateRequest, ...grpc.CallOption) (*api.AllocateResponse, error) {
	return &api.AllocateResponse{ContainerResponses: []*api.ContainerAllocateResponse{{}}}, nil
}

// startDevices starts the manager with these devices registered.
func (m *managers) startDevices(ctx context.Context, asked scenario, topology []cadvisor.Node, folder string) error {
	var err error
	logger := klog.FromContext(ctx)
	m.devices, err = newDeviceManager(logger, filepath.Join(folder, "devices", "kubelet.sock"), topology, m.topology)
	if err != nil {
		return err
	}
	m.topology.AddHintProvider(logger, m.devices)
	if err := m.devices.Start(logger, m.pods, ready{}, containermap.NewContainerMap(), sets.New[string]()); err != nil {
		return err
	}
	for resource, each := range asked.Devices {
		if err := m.devices.PluginConnected(ctx, resource, plugin{resource: resource}); err != nil {
			return err
		}
		m.devices.PluginListAndWatchReceiver(logger, resource, listed(each))
	}
	return nil
}

func listed(devices []device) *api.ListAndWatchResponse {
	response := &api.ListAndWatchResponse{}
	for _, each := range devices {
		found := &api.Device{ID: each.ID, Health: api.Healthy}
		if each.Healthy != nil && !*each.Healthy {
			found.Health = api.Unhealthy
		}
		if len(each.NUMANodes) > 0 {
			found.Topology = &api.TopologyInfo{}
		}
		for _, node := range each.NUMANodes {
			found.Topology.Nodes = append(found.Topology.Nodes, &api.NUMANode{ID: node})
		}
		response.Devices = append(response.Devices, found)
	}
	return response
}

// devicesOf are the ids of a container's devices by resource.
func (m *managers) devicesOf(uid, container string) map[string][]string {
	found := map[string][]string{}
	for resource, each := range m.devices.GetDevices(uid, container) {
		for id := range each {
			found[resource] = append(found[resource], id)
		}
		slices.Sort(found[resource])
	}
	return found
}

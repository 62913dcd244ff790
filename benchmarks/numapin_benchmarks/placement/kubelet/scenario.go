package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	cadvisor "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

type scenario struct {
	Name     string              `json:"name"`
	Topology machine             `json:"topology"`
	Policy   policy              `json:"policy"`
	Devices  map[string][]device `json:"devices"`
	Steps    []step              `json:"steps"`
}

type step struct {
	Add    *v1.Pod `json:"add"`
	Remove string  `json:"remove"`
}

// machine is the machine format; a CPU's row is CPU, core, socket, uncore cache, NUMA node.
type machine struct {
	CPUs      [][5]int   `json:"cpus"`
	NUMANodes []numaNode `json:"numaNodes"`
}

type numaNode struct {
	ID          int               `json:"id"`
	MemoryBytes uint64            `json:"memoryBytes"`
	HugePages   map[string]uint64 `json:"hugepages"`
	Distances   []uint64          `json:"distances"`
}

type policy struct {
	Reserved struct {
		CPUs   string `json:"cpus"`
		Count  int    `json:"count"`
		Strict bool   `json:"strict"`
	} `json:"reserved"`
	Options  map[string]bool `json:"options"`
	Topology struct {
		Policy        string `json:"policy"`
		Scope         string `json:"scope"`
		PreferClosest bool   `json:"preferClosestNUMANodes"`
	} `json:"topology"`
	Memory struct {
		Policy   string `json:"policy"`
		Reserved []struct {
			NUMANode  int32             `json:"numaNode"`
			Memory    string            `json:"memory"`
			HugePages map[string]string `json:"hugepages"`
		} `json:"reserved"`
	} `json:"memory"`
}

var optionNames = map[string]string{
	"fullPCPUsOnly":                "full-pcpus-only",
	"distributeCPUsAcrossNUMA":     "distribute-cpus-across-numa",
	"alignBySocket":                "align-by-socket",
	"distributeCPUsAcrossCores":    "distribute-cpus-across-cores",
	"preferAlignCPUsByUncoreCache": "prefer-align-cpus-by-uncorecache",
}

func (p policy) cpuOptions() map[string]string {
	options := map[string]string{}
	for name, on := range p.Options {
		options[optionNames[name]] = strconv.FormatBool(on)
	}
	if p.Reserved.Strict {
		options["strict-cpu-reservation"] = "true"
	}
	return options
}

// topologyOptions let the managers work on as many NUMA nodes as there are, as our planner does.
func (p policy) topologyOptions(numaNodes int) map[string]string {
	options := map[string]string{}
	if p.Topology.PreferClosest {
		options["prefer-closest-numa-nodes"] = "true"
	}
	if numaNodes > 8 {
		options["max-allowable-numa-nodes"] = strconv.Itoa(numaNodes)
	}
	return options
}

var topologyPolicies = map[string]string{
	"": "none", "None": "none", "BestEffort": "best-effort",
	"Restricted": "restricted", "SingleNUMANode": "single-numa-node",
}

func (p policy) scope() string {
	if p.Topology.Scope == "Pod" {
		return "pod"
	}
	return "container"
}

// reservedMemory is what the memory manager is told, and the node's reservation it must add up to.
func (p policy) reservedMemory() ([]kubeletconfig.MemoryReservation, v1.ResourceList, error) {
	var reserved []kubeletconfig.MemoryReservation
	total := v1.ResourceList{}
	for _, each := range p.Memory.Reserved {
		asked := map[v1.ResourceName]string{}
		if each.Memory != "" {
			asked[v1.ResourceMemory] = each.Memory
		}
		for size, quantity := range each.HugePages {
			asked[v1.ResourceName(v1.ResourceHugePagesPrefix+size)] = quantity
		}
		limits := v1.ResourceList{}
		for name, text := range asked {
			quantity, err := resource.ParseQuantity(text)
			if err != nil {
				return nil, nil, err
			}
			limits[name] = quantity
			sum := total[name]
			sum.Add(quantity)
			total[name] = sum
		}
		reserved = append(reserved, kubeletconfig.MemoryReservation{NumaNode: each.NUMANode, Limits: limits})
	}
	return reserved, total, nil
}

// info is the machine as cAdvisor would describe it.
func (m machine) info() (*cadvisor.MachineInfo, error) {
	sockets := map[int]bool{}
	info := &cadvisor.MachineInfo{NumCores: len(m.CPUs)}
	for _, node := range m.NUMANodes {
		pages, err := hugePages(node.HugePages)
		if err != nil {
			return nil, err
		}
		info.Topology = append(info.Topology, cadvisor.Node{
			Id: node.ID, Memory: node.MemoryBytes, HugePages: pages, Distances: node.Distances,
			Cores: m.cores(node.ID),
		})
	}
	for _, row := range m.CPUs {
		sockets[row[2]] = true
	}
	info.NumSockets = len(sockets)
	return info, nil
}

func (m machine) cores(numaNode int) []cadvisor.Core {
	found := map[int]*cadvisor.Core{}
	for _, row := range m.CPUs {
		cpu, id, socket, cache := row[0], row[1], row[2], row[3]
		if row[4] != numaNode {
			continue
		}
		core, known := found[id]
		if !known {
			core = &cadvisor.Core{Id: id, SocketID: socket}
			if cache >= 0 {
				core.UncoreCaches = []cadvisor.Cache{{Id: cache, Level: 3, Type: "Unified"}}
			}
			found[id] = core
		}
		core.Threads = append(core.Threads, cpu)
	}
	cores := []cadvisor.Core{}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		cores = append(cores, *found[id])
	}
	return cores
}

func hugePages(counts map[string]uint64) ([]cadvisor.HugePagesInfo, error) {
	pages := []cadvisor.HugePagesInfo{}
	for _, size := range slices.Sorted(maps.Keys(counts)) {
		quantity, err := resource.ParseQuantity(size)
		if err != nil {
			return nil, fmt.Errorf("huge page size %q: %w", size, err)
		}
		pages = append(pages, cadvisor.HugePagesInfo{
			PageSize: uint64(quantity.Value()) / 1024, NumPages: counts[size],
		})
	}
	return pages, nil
}

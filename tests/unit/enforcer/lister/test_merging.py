"""The kubelet's answers with what containers have of numapin."""

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import MemoryBlock
from numapin_enforcer.lister.in_force import Given, InForce
from numapin_enforcer.lister.merging import merge_allocatable, merge_pods
from numapin_enforcer.runtime.generated import podresources_v1_pb2 as pb

BLOCKS = (
    MemoryBlock((0,), "memory", 1 << 30),
    MemoryBlock((0, 1), "hugepages-2Mi", 1 << 21),
)
OURS = InForce(
    CpuSet(range(1, 8)),
    {("d", "p", "c"): Given(CpuSet([12, 3])), ("d", "p", "m"): Given(CpuSet(), BLOCKS)},
)


def memory(type_: str, size: int, *nodes: int) -> pb.ContainerMemory:
    topology = pb.TopologyInfo(nodes=[pb.NUMANode(ID=node) for node in nodes])
    return pb.ContainerMemory(memory_type=type_, size=size, topology=topology)


def pod(*containers: pb.ContainerResources, name: str = "p") -> pb.PodResources:
    return pb.PodResources(name=name, namespace="d", containers=containers)


GPU = pb.ContainerDevices(resource_name="example.com/gpu", device_ids=["gpu-0"])


def test_each_container_has_what_it_has_beside_its_devices() -> None:
    claim = pb.DynamicResource(claim_name="gpu", claim_namespace="d")
    shared = pb.ContainerResources(name="s", devices=[GPU], dynamic_resources=[claim])
    found = pod(
        pb.ContainerResources(name="c", devices=[GPU]), pb.ContainerResources(name="m"), shared
    )
    other = pod(pb.ContainerResources(name="c"), name="q")
    merge_pods([found, other], OURS)
    assert found == pod(
        pb.ContainerResources(name="c", devices=[GPU], cpu_ids=[3, 12]),
        pb.ContainerResources(
            name="m", memory=[memory("memory", 1 << 30, 0), memory("hugepages-2Mi", 1 << 21, 0, 1)]
        ),
        shared,
    )
    assert other == pod(pb.ContainerResources(name="c"), name="q")


def test_what_the_kubelet_gives_itself_stays() -> None:
    own = memory("memory", 5, 1)
    found = pod(pb.ContainerResources(name="c", cpu_ids=[7], memory=[own]))
    before = pb.PodResources.FromString(found.SerializeToString())
    merge_pods([found], OURS)
    assert found == before
    answer = pb.AllocatableResourcesResponse(cpu_ids=[7])
    merge_allocatable(answer, OURS)
    assert answer.cpu_ids == [7]


def test_the_node_has_its_allocatable_cpus_beside_its_devices() -> None:
    answer = pb.AllocatableResourcesResponse(devices=[GPU])
    merge_allocatable(answer, OURS)
    assert answer == pb.AllocatableResourcesResponse(devices=[GPU], cpu_ids=range(1, 8))


def test_where_numapin_enforces_nothing_the_answer_is_the_kubelets() -> None:
    found, answer = pod(pb.ContainerResources(name="c")), pb.AllocatableResourcesResponse()
    merge_pods([found], InForce())
    merge_allocatable(answer, InForce())
    assert found == pod(pb.ContainerResources(name="c"))
    assert answer == pb.AllocatableResourcesResponse()


def test_fields_of_a_newer_kubelet_are_passed_on() -> None:
    unknown = b"\xfa\x01\x03new"  # field 31, 3 bytes
    found = pb.PodResources.FromString(pod(pb.ContainerResources(name="c")).SerializeToString())
    found.MergeFromString(unknown)
    merge_pods([found], OURS)
    assert unknown in found.SerializeToString()

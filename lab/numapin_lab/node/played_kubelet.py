"""Plays the kubelet on a real containerd: pods' cgroups, sandboxes, containers; nothing faked."""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grpclib.client import Channel

from numapin_enforcer.runtime.generated import cri_v1_pb2 as pb
from numapin_enforcer.runtime.generated.cri_v1_grpc import RuntimeServiceStub
from numapin_lab.node.cgroups import MOUNTS, hierarchies, open_to_children
from numapin_lab.node.containerd import Runtime

CALL_SECONDS = 240
QOS = ("burstable", "besteffort")
FIRST_ACT = ("sh", "-c", "grep Cpus_allowed_list /proc/self/status; sleep 1000")
"""A container's program that first says where it may run."""


@dataclass(frozen=True)
class Pod:
    """A pod's sandbox and its cgroup, relative to a hierarchy's root."""

    uid: str
    name: str
    cgroup: str
    sandbox_id: str
    config: pb.PodSandboxConfig


@dataclass
class Kubelet:
    """Below `root`, a cgroup of its own (such as `/lab/t1`), as the kubelet's cgroupRoot."""

    runtime: Runtime
    root: str
    logs: Path
    pods: list[Pod] = field(default_factory=list)

    async def start(self) -> None:
        """Connect, and make the cgroups that a kubelet makes when it starts."""
        self.channel = Channel(path=str(self.runtime.socket))
        self.stub = RuntimeServiceStub(self.channel)
        for path in (self.kubepods, *self.classes):
            self.make(path)

    async def stop(self) -> None:
        """Remove every pod that is left, and hang up."""
        for pod in self.pods:
            request = pb.RemovePodSandboxRequest(pod_sandbox_id=pod.sandbox_id)
            await self.stub.RemovePodSandbox(request, timeout=CALL_SECONDS)
        self.channel.close()

    @property
    def kubepods(self) -> str:
        """The cgroup of all pods."""
        return f"{self.root.strip('/')}/kubepods"

    @property
    def classes(self) -> tuple[str, ...]:
        """The cgroups of the QoS classes that have one."""
        return tuple(f"{self.kubepods}/{name}" for name in QOS)

    def pod_cgroup(self, qos: str, uid: str) -> str:
        """The cgroup of a pod; `qos` is empty for Guaranteed."""
        return "/".join(filter(None, (self.kubepods, qos, f"pod{uid}")))

    def make(self, cgroup: str) -> None:
        """Make a cgroup as a kubelet with the driver `cgroupfs` does."""
        make_cgroup(cgroup)

    def unmake(self, cgroup: str) -> None:
        """Remove one that is empty."""
        for mount in hierarchies(MOUNTS.read_text()):
            if (mount / cgroup).is_dir():
                (mount / cgroup).rmdir()

    async def run_pod(self, name: str, qos: str = "", uid: str = "") -> Pod:
        """Make a pod's cgroup and its sandbox; `qos` is empty for Guaranteed."""
        uid = uid or str(uuid.uuid4())
        cgroup = self.pod_cgroup(qos, uid)
        self.make(cgroup)
        node = pb.NamespaceOption(network=pb.NODE, pid=pb.CONTAINER, ipc=pb.POD)
        config = pb.PodSandboxConfig(
            metadata=pb.PodSandboxMetadata(name=name, uid=uid, namespace="default"),
            log_directory=str(self.logs),
            linux=pb.LinuxPodSandboxConfig(
                cgroup_parent=f"/{cgroup}",
                security_context=pb.LinuxSandboxSecurityContext(namespace_options=node),
            ),
        )
        answer = await self.stub.RunPodSandbox(
            pb.RunPodSandboxRequest(config=config), timeout=CALL_SECONDS
        )
        pod = Pod(uid, name, cgroup, answer.pod_sandbox_id, config)
        self.pods.append(pod)
        return pod

    async def create(
        self, pod: Pod, name: str, command: Sequence[str], *, quota_us: int = 0
    ) -> str:
        """Create a container without starting it; `quota_us` is its CFS limit, 0 is none."""
        node = pb.NamespaceOption(network=pb.NODE, pid=pb.CONTAINER, ipc=pb.POD)
        security = pb.LinuxContainerSecurityContext(namespace_options=node)
        resources = pb.LinuxContainerResources(cpu_period=100_000, cpu_shares=1024)
        resources.cpu_quota = quota_us
        config = pb.ContainerConfig(
            metadata=pb.ContainerMetadata(name=name),
            image=pb.ImageSpec(image=self.runtime.image),
            command=command,
            labels=_labels(pod, name),
            log_path=_log_name(pod, name),
            linux=pb.LinuxContainerConfig(resources=resources, security_context=security),
        )
        answer = await self.stub.CreateContainer(
            pb.CreateContainerRequest(
                pod_sandbox_id=pod.sandbox_id, config=config, sandbox_config=pod.config
            ),
            timeout=CALL_SECONDS,
        )
        return answer.container_id

    async def run(
        self, pod: Pod, name: str, command: Sequence[str] = ("sleep", "1000"), *, quota_us: int = 0
    ) -> str:
        """Create a container and start it; returns its id."""
        container_id = await self.create(pod, name, command, quota_us=quota_us)
        await self.begin(container_id)
        return container_id

    async def begin(self, container_id: str) -> None:
        """Start a container that was created."""
        request = pb.StartContainerRequest(container_id=container_id)
        await self.stub.StartContainer(request, timeout=CALL_SECONDS)

    async def update(self, container_id: str, linux: pb.LinuxContainerResources) -> None:
        """Update a container's resources, as an in-place resize does."""
        request = pb.UpdateContainerResourcesRequest(container_id=container_id, linux=linux)
        await self.stub.UpdateContainerResources(request, timeout=CALL_SECONDS)

    async def remembered(self, container_id: str) -> str:
        """The CPUs that the runtime has recorded for a container; the kernel may have others."""
        request = pb.ContainerStatusRequest(container_id=container_id)
        answer = await self.stub.ContainerStatus(request)
        cpus: str = answer.status.resources.linux.cpuset_cpus
        return cpus

    async def until_remembered(self, container_id: str, cpus: str) -> None:
        """Wait until the runtime has recorded these CPUs for a container."""
        async with asyncio.timeout(CALL_SECONDS):
            while True:
                if await self.remembered(container_id) == cpus:
                    return
                await asyncio.sleep(0.05)

    async def remove_container(self, container_id: str) -> None:
        """Stop a container at once, and remove it."""
        stop = pb.StopContainerRequest(container_id=container_id, timeout=0)
        await self.stub.StopContainer(stop, timeout=CALL_SECONDS)
        remove = pb.RemoveContainerRequest(container_id=container_id)
        await self.stub.RemoveContainer(remove, timeout=CALL_SECONDS)

    async def remove_pod(self, pod: Pod) -> None:
        """Stop and remove a pod, and last its cgroup, as the kubelet does."""
        stop = pb.StopPodSandboxRequest(pod_sandbox_id=pod.sandbox_id)
        await self.stub.StopPodSandbox(stop, timeout=CALL_SECONDS)
        remove = pb.RemovePodSandboxRequest(pod_sandbox_id=pod.sandbox_id)
        await self.stub.RemovePodSandbox(remove, timeout=CALL_SECONDS)
        self.pods.remove(pod)
        self.unmake(pod.cgroup)

    def log(self, pod: Pod, name: str) -> Path:
        """Where the runtime writes what a container prints."""
        return self.logs / _log_name(pod, name)

    def output(self, pod: Pod, name: str) -> str:
        """What a container printed, without the runtime's stamps. Source: CRI log format."""
        path = self.log(pod, name)
        lines = path.read_text().splitlines() if path.exists() else []
        return "\n".join(line.split(" ", 3)[3] for line in lines)


def _labels(pod: Pod, container: str) -> dict[str, str]:
    """Those of a kubelet that numapin reads, and CRI-O for NRI."""
    found = {"pod.name": pod.name, "pod.namespace": "default", "pod.uid": pod.uid}
    found["container.name"] = container
    return {f"io.kubernetes.{name}": value for name, value in found.items()}


def _log_name(pod: Pod, name: str) -> str:
    return f"{pod.uid}-{name}.log"


def make_cgroup(path: str) -> None:
    """Make a cgroup in every hierarchy, with controllers and cpuset as libcontainer leaves it."""
    for mount in hierarchies(MOUNTS.read_text()):
        folder = mount
        for part in path.split("/"):
            folder = folder / part
            folder.mkdir(exist_ok=True)
            open_to_children(folder)

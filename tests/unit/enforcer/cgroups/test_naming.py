import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_enforcer.cgroups.naming import (
    CgroupName,
    CgroupNaming,
    Driver,
    InvalidIdError,
    Kind,
    Qos,
    other_driver,
)

UID = "0c86c441-7f4c-4c5b-8d7e-1a8d3f1b2c3d"
HASHED = "5e8f9b0c1d2e3f405162738495a6b7c8"
ID = "0123456789abcdef" * 4
SLICE = "kubepods.slice"

CGROUPFS, SYSTEMD = CgroupNaming(Driver.CGROUPFS), CgroupNaming(Driver.SYSTEMD)
_ESCAPED = UID.replace("-", "_")
_BURSTABLE = "kubepods.slice/kubepods-burstable.slice"
_SYSTEMD_POD = f"{_BURSTABLE}/kubepods-burstable-pod{_ESCAPED}.slice"


@pytest.mark.parametrize(
    ("naming", "root"),
    [
        (CGROUPFS, "kubepods"),
        (SYSTEMD, "kubepods.slice"),
        (CgroupNaming(Driver.CGROUPFS, "/one/two"), "one/two/kubepods"),
        (CgroupNaming(Driver.CGROUPFS, "one/"), "one/kubepods"),
        (
            CgroupNaming(Driver.SYSTEMD, "/one-a/two"),
            "one_a.slice/one_a-two.slice/one_a-two-kubepods.slice",
        ),
    ],
)
def test_the_root_is_named_as_the_kubelet_names_it(naming: CgroupNaming, root: str) -> None:
    assert naming.root == root


@pytest.mark.parametrize("root", ["/..", "/a/../b", "/a_b", "/a b", "/.", "/a\n", "/$HOME"])
def test_an_invalid_root_is_refused(root: str) -> None:
    with pytest.raises(InvalidIdError, match="cannot be the cgroup root"):
        CgroupNaming(Driver.CGROUPFS, root)


@pytest.mark.parametrize(
    ("naming", "path", "name"),
    [
        (CGROUPFS, "kubepods", CgroupName(Kind.ROOT)),
        (CGROUPFS, "kubepods/burstable", CgroupName(Kind.QOS, Qos.BURSTABLE)),
        (CGROUPFS, "kubepods/besteffort", CgroupName(Kind.QOS, Qos.BEST_EFFORT)),
        (CGROUPFS, f"kubepods/pod{UID}", CgroupName(Kind.POD, Qos.GUARANTEED, UID)),
        (
            CGROUPFS,
            f"kubepods/besteffort/pod{HASHED}",
            CgroupName(Kind.POD, Qos.BEST_EFFORT, HASHED),
        ),
        (
            CGROUPFS,
            f"kubepods/burstable/pod{UID}/{ID}",
            CgroupName(Kind.CONTAINER, Qos.BURSTABLE, UID, ID),
        ),
        (
            CGROUPFS,
            f"kubepods/pod{UID}/crio-{ID}",
            CgroupName(Kind.CONTAINER, pod_uid=UID, container_id=ID),
        ),
        (CGROUPFS, f"kubepods/pod{UID}/crio-conmon-{ID}", CgroupName(Kind.OTHER, pod_uid=UID)),
        (
            CGROUPFS,
            f"kubepods/pod{UID}/{ID}/a/b",
            CgroupName(Kind.NESTED, pod_uid=UID, container_id=ID),
        ),
        (CGROUPFS, f"kubepods/pod{UID}/{ID[:-1]}", CgroupName(Kind.OTHER, pod_uid=UID)),
        (CGROUPFS, f"kubepods/pod{UID}/{ID.upper()}", CgroupName(Kind.OTHER, pod_uid=UID)),
        (CGROUPFS, "kubepods/burstable/strange", CgroupName(Kind.OTHER, Qos.BURSTABLE)),
        (CGROUPFS, "kubepods/burstable/strange/in", CgroupName(Kind.NESTED, Qos.BURSTABLE)),
        (CGROUPFS, "kubepods/guaranteed", CgroupName(Kind.OTHER)),
        (CGROUPFS, "kubepods/pod", CgroupName(Kind.OTHER)),
        (CGROUPFS, f"kubepods/pod{_ESCAPED}", CgroupName(Kind.OTHER)),
        (CGROUPFS, "kubepods/burstable/burstable", CgroupName(Kind.OTHER, Qos.BURSTABLE)),
        (SYSTEMD, "kubepods.slice", CgroupName(Kind.ROOT)),
        (SYSTEMD, _BURSTABLE, CgroupName(Kind.QOS, Qos.BURSTABLE)),
        (SYSTEMD, _SYSTEMD_POD, CgroupName(Kind.POD, Qos.BURSTABLE, UID)),
        (
            SYSTEMD,
            f"kubepods.slice/kubepods-pod{_ESCAPED}.slice",
            CgroupName(Kind.POD, Qos.GUARANTEED, UID),
        ),
        (
            SYSTEMD,
            f"{_SYSTEMD_POD}/cri-containerd-{ID}.scope",
            CgroupName(Kind.CONTAINER, Qos.BURSTABLE, UID, ID),
        ),
        (
            SYSTEMD,
            f"{_SYSTEMD_POD}/crio-{ID}.scope",
            CgroupName(Kind.CONTAINER, Qos.BURSTABLE, UID, ID),
        ),
        (
            SYSTEMD,
            f"{_SYSTEMD_POD}/crio-{ID}.scope/container",
            CgroupName(Kind.NESTED, Qos.BURSTABLE, UID, ID),
        ),
        (SYSTEMD, f"{_SYSTEMD_POD}/crio-{ID}", CgroupName(Kind.CONTAINER, Qos.BURSTABLE, UID, ID)),
        (SYSTEMD, f"{_SYSTEMD_POD}/docker-{ID}", CgroupName(Kind.OTHER, Qos.BURSTABLE, UID)),
        (
            SYSTEMD,
            f"{_SYSTEMD_POD}/crio-conmon-{ID}.scope",
            CgroupName(Kind.OTHER, Qos.BURSTABLE, UID),
        ),
        (
            SYSTEMD,
            f"{_BURSTABLE}/kubepods-pod{_ESCAPED}.slice",
            CgroupName(Kind.OTHER, Qos.BURSTABLE),
        ),
        (SYSTEMD, f"kubepods.slice/pod{UID}", CgroupName(Kind.OTHER)),
    ],
)
def test_a_path_is_parsed_to_its_pod_and_container(
    naming: CgroupNaming, path: str, name: CgroupName
) -> None:
    assert naming.parse(path) == name


@pytest.mark.parametrize(
    "path",
    ["", "/", "kubepod", "kubepods2/x", "kubepods/../x", "kubepods//x", "kubepods/./x", "other"],
)
def test_a_path_outside_the_tree_is_refused(path: str) -> None:
    with pytest.raises(InvalidIdError):
        CGROUPFS.parse(path)


@given(
    naming=st.sampled_from(
        [
            CGROUPFS,
            SYSTEMD,
            CgroupNaming(Driver.SYSTEMD, "/a-b/c"),
            CgroupNaming(Driver.CGROUPFS, "/a-b/c"),
        ]
    ),
    qos=st.sampled_from(Qos),
    uid=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}", fullmatch=True),
)
def test_the_path_of_a_pod_is_parsed_to_that_pod(naming: CgroupNaming, qos: Qos, uid: str) -> None:
    if uid.isascii():
        assert naming.parse(naming.pod_path(qos, uid)) == CgroupName(Kind.POD, qos, uid)


@given(st.sampled_from([CGROUPFS, SYSTEMD]), st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_no_name_that_the_kernel_allows_breaks_the_parser(
    naming: CgroupNaming, names: list[str]
) -> None:
    clean = [name.replace("/", "-").replace("\0", "-") for name in names]
    if not {".", ".."} & set(clean):
        assert naming.parse("/".join([naming.root, *clean])).kind in Kind


@pytest.mark.parametrize("uid", ["", "..", "a/b", "a_b", "-a", "a\n", "a" * 65, "ä"])
def test_an_invalid_pod_uid_is_refused(uid: str) -> None:
    with pytest.raises(InvalidIdError, match="cannot be a pod's UID"):
        CGROUPFS.pod_path(Qos.BURSTABLE, uid)


@pytest.mark.parametrize(
    ("path", "kubepods", "driver"),
    [
        (f"system.slice/x.service/kubepods-podu_1.slice:cri-containerd:{ID}", SLICE, "cgroupfs"),
        (f"kubepods-besteffort-podu.slice:docker:{ID}", SLICE, "cgroupfs"),
        (
            f"lab.slice/lab-kubepods-podu.slice:crio:{ID}",
            "lab.slice/lab-kubepods.slice",
            "cgroupfs",
        ),
        (f"kubepods/burstable/podu-1/{ID}", SLICE, "cgroupfs"),
        (f"kubepods.slice/kubepods-podu_1.slice/cri-containerd-{ID}.scope", "kubepods", "systemd"),
        (f"k8s.io/{ID}", SLICE, None),
        (f"k8s.io/{ID}", "kubepods", None),
        (f"other/kubepods/podu/{ID}", "kubepods", None),
        (f"system.slice/docker-{ID}.scope", SLICE, None),
        (f"other.slice/other-kubepods.slice/x/{ID}", SLICE, None),
        (f"system.slice/a.service/mine.slice:x:{ID}", SLICE, None),
    ],
)
def test_the_driver_of_a_runtime_shows_in_a_cgroup_outside_of_the_tree(
    path: str, kubepods: str, driver: str | None
) -> None:
    assert other_driver(path, kubepods) == driver

"""Names of objects and accounts, and the objects that a value adds or leaves out."""

import pytest

from support.real.installing.helm import Helm, Object
from support.real.installing.rendered import ABSENT, Objects, changes, leaves, rendered

COMPONENTS = ("operator", "enforcer", "standby")


@pytest.fixture(scope="module")
def plain(helm: Helm) -> Objects:
    return rendered(helm, {})


@pytest.mark.parametrize(
    ("given", "prefix"),
    [
        ({"fullnameOverride": "pins"}, "pins"),
        ({"nameOverride": "cpus"}, "numapin-cpus"),
        ({"nameOverride": "numa"}, "numapin"),
        ({"fullnameOverride": "pins", "nameOverride": "cpus"}, "pins"),
    ],
)
def test_names_begin_with_what_the_values_say(helm: Helm, given: Object, prefix: str) -> None:
    everything = {
        "holding": {"enabled": True},
        "cpuAnnotation": {"enabled": True},
        "kubevirt": {"enabled": True},
        "cpuMetrics": {"enabled": True},
        "interrupts": {"enabled": True},
        "resctrl": {"enabled": True},
        "eviction": {"enabled": True},
        "nodeResourceTopology": {"enabled": True},
        "serviceMonitor": {"enabled": True},
        "alerts": {"enabled": True},
        "openshift": {"enabled": True},
        "criticalQuota": {"enabled": True},
        "dashboard": {"enabled": True},
    }
    before, after = rendered(helm, everything), rendered(helm, everything | given)
    ours = {key for key in before if key[0] != "CustomResourceDefinition"}
    assert after.keys() - before.keys() == {
        (kind, prefix + name.removeprefix("numapin")) for kind, name in ours if prefix != "numapin"
    }
    for (kind, name), body in after.items():
        for account in body.get("subjects", ()):
            assert ("ServiceAccount", account["name"]) in after
        role = body.get("roleRef")
        assert role is None or (role["kind"], role["name"]) in after
        policy = body["spec"].get("policyName") if kind.endswith("PolicyBinding") else None
        assert policy is None or (kind.removesuffix("Binding"), policy) in after
        assert body["metadata"]["labels"]["app.kubernetes.io/name"] == "numapin", name
    for kind, name in (key for key in after if key[0] in ("Deployment", "DaemonSet")):
        pod = after[kind, name]["spec"]["template"]["spec"]
        assert ("ServiceAccount", pod["serviceAccountName"]) in after


def test_an_account_of_another_name_has_the_rights_and_the_limits(
    helm: Helm, plain: Objects
) -> None:
    given = {
        "enforcer": {"serviceAccount": {"name": "pinner", "annotations": {"role": "arn:a"}}},
        "operator": {"serviceAccount": {"create": False, "name": "there"}},
    }
    after = rendered(helm, given)
    assert ("ServiceAccount", "there") not in after
    assert after["ServiceAccount", "pinner"]["metadata"]["annotations"] == {"role": "arn:a"}
    found = changes(plain, after)
    assert found["enforcer"] == {"spec.serviceAccountName": "pinner"}
    assert found["operator"] == found["test"] == {"spec.serviceAccountName": "there"}
    user = 'request.userInfo.username == "system:serviceaccount:numapin-system:pinner"'
    policies = ("own-node", "own-events", "own-lease")
    for policy in policies:
        path = "spec.matchConditions.is-an-enforcer.expression"
        name = f"ValidatingAdmissionPolicy/numapin-enforcer-{policy}"
        assert found[name] == {path: user}
    told = {kind for kind, body in leaves(after).items() if 'contains("numapin-' in str(body)}
    assert not told, "no rule is for an account that is not there"
    bound = [one for body in after.values() for one in body.get("subjects", ())]
    assert {one["name"] for one in bound} == {"pinner", "there"}


def test_network_policies_are_left_out_or_name_the_ports(helm: Helm, plain: Objects) -> None:
    without = rendered(helm, {"networkPolicies": {"enabled": False}})
    policies = {("NetworkPolicy", f"numapin-{one}") for one in COMPONENTS}
    assert plain.keys() - without.keys() == policies
    named = rendered(helm, {"networkPolicies": {"egressPorts": [443, 4317]}})
    ports = [{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 4317}]
    resolver = {"protocol": "UDP", "port": 53}
    wanted = {"spec.egress": [{"ports": [*ports, resolver]}]}
    whom = [f"NetworkPolicy/numapin-{one}" for one in ("operator", "enforcer")]
    assert changes(plain, named) == dict.fromkeys(whom, wanted)


def test_a_servicemonitor_finds_the_pods_that_have_metrics(helm: Helm, plain: Objects) -> None:
    chosen = {"enabled": True, "labels": {"release": "main"}, "interval": "15s"}
    after = rendered(helm, {"serviceMonitor": chosen})
    monitor = after["ServiceMonitor", "numapin"]
    services = {name: body for (kind, name), body in after.items() if kind == "Service"}
    assert after.keys() - plain.keys() == {
        ("ServiceMonitor", "numapin"),
        *(("Service", name) for name in services),
    }
    assert monitor["metadata"]["labels"]["release"] == "main"
    (endpoint,) = monitor["spec"]["endpoints"]
    pods = rendered(helm, {"podMonitor": chosen})["PodMonitor", "numapin"]["spec"]
    assert endpoint == pods["podMetricsEndpoints"][0]
    for service in services.values():
        labels = service["metadata"]["labels"]
        assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
        selector = service["spec"]["selector"]
        assert selector.items() <= labels.items()
        assert service["spec"]["ports"][0]["name"] == endpoint["port"]
        kind = "Deployment" if "operator" in selector.values() else "DaemonSet"
        name = f"numapin-{selector['app.kubernetes.io/component']}"
        template = after[kind, name]["spec"]["template"]
        assert selector.items() <= template["metadata"]["labels"].items()
        (port,) = template["spec"]["containers"][0]["ports"]
        assert port["name"] == service["spec"]["ports"][0]["targetPort"]
    assert len(services) == 2


def test_paths_of_the_host_are_where_the_values_say(helm: Helm, plain: Objects) -> None:
    given = {
        "kubeletDir": "/data/kubelet",
        "runtimeSocket": "/run/own/containerd.sock",
        "cdiDir": "/etc/cdi",
        "cgroupRoot": "/pods",
    }
    found = changes(plain, rendered(helm, {"host": given}))
    files = ("cpu-manager-state", "memory-manager-state")
    path = "hostPath.path"
    state = {
        f"spec.volumes.{one}.{path}": f"/data/kubelet/{one.replace('-', '_')}" for one in files
    } | {"container.args.--cgroup-root=/pods": True}
    assert found == {
        "standby": state,
        "enforcer": {
            f"spec.volumes.pod-resources.{path}": "/data/kubelet/pod-resources",
            f"spec.volumes.runtime.{path}": "/run/own",
            f"spec.volumes.cdi.{path}": "/etc/cdi",
            **state,
        },
    }


def test_an_own_socket_is_found_by_its_name(helm: Helm) -> None:
    found = rendered(helm, {"host": {"runtimeSocket": "/srv/cri.sock"}})
    (container,) = found["DaemonSet", "numapin-enforcer"]["spec"]["template"]["spec"]["containers"]
    assert "--cri-socket=/host/run/cri/cri.sock" in container["args"]
    assert {"name": "runtime", "mountPath": "/host/run/cri"} in container["volumeMounts"]


def test_the_hosts_processes_and_the_type_of_selinux_are_options(
    helm: Helm, plain: Objects
) -> None:
    both = ("enforcer", "standby")
    without = changes(plain, rendered(helm, {"nodes": {"hostPID": False}}))
    assert without == {one: {"spec.hostPID": ABSENT} for one in both}
    typed = rendered(helm, {"selinux": {"enabled": True, "type": "control_t"}})
    type_ = {"spec.securityContext.seLinuxOptions.type": "control_t"}
    assert changes(plain, typed) == dict.fromkeys(both, type_)
    own = {"podSecurityContext": {"seLinuxOptions": {"type": "super_t"}}}
    found = changes(plain, rendered(helm, {"selinux": {"enabled": True}, "enforcer": own}))
    assert found["enforcer"] == {"spec.securityContext.seLinuxOptions.type": "super_t"}


def test_the_quota_is_for_the_priorities_that_the_pods_have(helm: Helm) -> None:
    given = {
        "criticalQuota": {"enabled": True},
        "operator": {"priorityClassName": "mine"},
        "standby": {"priorityClassName": "other"},
    }
    quota = rendered(helm, given)["ResourceQuota", "numapin-critical"]["spec"]
    (term,) = quota["scopeSelector"]["matchExpressions"]
    assert term["values"] == ["mine", "system-node-critical", "other"]


def test_openshift_grants_what_the_pods_have_and_no_more(helm: Helm) -> None:
    found = rendered(helm, {"openshift": {"enabled": True}, "nodes": {"hostPID": False}})
    scc = found["SecurityContextConstraints", "numapin-nodes"]
    assert not scc["allowHostPID"]
    kinds = set()
    for name in ("numapin-enforcer", "numapin-standby"):
        pod = found["DaemonSet", name]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        rights = container["securityContext"]
        assert rights["capabilities"]["drop"] == scc["requiredDropCapabilities"]
        assert set(rights["capabilities"]["add"]) == set(scc["allowedCapabilities"])
        assert rights["runAsUser"] == scc["runAsUser"]["uid"]
        assert rights["readOnlyRootFilesystem"] == scc["readOnlyRootFilesystem"]
        kinds |= {key for volume in pod["volumes"] for key in volume if key != "name"}
    assert kinds | {"projected"} == set(scc["volumes"])
    (rule,) = found["ClusterRole", "numapin-nodes"]["rules"]
    assert rule["resourceNames"] == [scc["metadata"]["name"]]
    subjects = found["RoleBinding", "numapin-nodes"]["subjects"]
    assert {one["name"] for one in subjects} == {"numapin-enforcer", "numapin-standby"}

"""What a value sets is where it must be, and nothing else changes."""

from typing import Any

import pytest
import yaml

from numapin_lab.controlplane.kubectl import Kubectl
from support.real.installing.helm import Helm, Object
from support.real.installing.rendered import ABSENT, Objects, changes, leaves, rendered

COMPONENTS = ("operator", "enforcer", "standby")
NODE_AFFINITY: Object = {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}
}
TERMS = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"

IN_EACH_POD: dict[str, tuple[Any, Object]] = {
    "podLabels": ({"team": "a"}, {"metadata.labels.team": "a"}),
    "nodeSelector": ({"pool": "a"}, {"spec.nodeSelector.pool": "a"}),
    "tolerations": ([{"key": "a"}], {"spec.tolerations": [{"key": "a"}]}),
    "affinity": (
        {"nodeAffinity": NODE_AFFINITY},
        {f"spec.affinity.nodeAffinity.{TERMS}": [{}]},
    ),
    "imagePullSecrets": (["one"], {"spec.imagePullSecrets.one.name": "one"}),
    "podSecurityContext": (
        {"appArmorProfile": {"type": "Unconfined"}},
        {"spec.securityContext.appArmorProfile.type": "Unconfined"},
    ),
    "securityContext": (
        {"readOnlyRootFilesystem": False},
        {"container.securityContext.readOnlyRootFilesystem": False},
    ),
    "extraEnv": (
        [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        {"container.env.HTTPS_PROXY.name": "HTTPS_PROXY"}
        | {"container.env.HTTPS_PROXY.value": "http://proxy:3128"},
    ),
    "extraVolumes": (
        [{"name": "ca", "configMap": {"name": "ca"}}],
        {"spec.volumes.ca.name": "ca", "spec.volumes.ca.configMap.name": "ca"},
    ),
    "extraVolumeMounts": (
        [{"name": "ca", "mountPath": "/etc/ssl/certs"}],
        {"container.volumeMounts.ca.name": "ca"}
        | {"container.volumeMounts.ca.mountPath": "/etc/ssl/certs"},
    ),
}
"""Values of a component that its pods have, and for the operator the pod of `helm test` too."""

IN_ITS_PODS: dict[str, tuple[Any, Object]] = {
    "podAnnotations": ({"a": "b"}, {"metadata.annotations.a": "b"}),
    "priorityClassName": ("mine", {"spec.priorityClassName": "mine"}),
    "extraArgs": (["--resync-seconds=5"], {"container.args.--resync-seconds=5": True}),
    "resources": ({"limits": {"cpu": 2}}, {"container.resources.limits.cpu": 2}),
}
"""Values of a component that only its own pods have."""

SHARED = IN_EACH_POD.keys() - {"extraEnv", "extraVolumes", "extraVolumeMounts"}
"""Values of `nodes`, beside podAnnotations and priorityClassName."""


@pytest.fixture(scope="module")
def plain(helm: Helm) -> Objects:
    return rendered(helm, {})


@pytest.mark.parametrize("value", [*IN_EACH_POD, *IN_ITS_PODS])
@pytest.mark.parametrize("component", COMPONENTS)
def test_a_value_of_a_component_changes_its_pods_alone(
    helm: Helm, plain: Objects, component: str, value: str
) -> None:
    given, expected = (IN_EACH_POD | IN_ITS_PODS)[value]
    pods = [component, "test"] if component == "operator" and value in IN_EACH_POD else [component]
    found = changes(plain, rendered(helm, {component: {value: given}}))
    assert found == dict.fromkeys(pods, expected)


@pytest.mark.parametrize("value", sorted(SHARED | {"podAnnotations", "priorityClassName"}))
def test_a_value_of_the_nodes_is_for_enforcer_and_standby(
    helm: Helm, plain: Objects, value: str
) -> None:
    given, expected = (IN_EACH_POD | IN_ITS_PODS)[value]
    found = changes(plain, rendered(helm, {"nodes": {value: given}}))
    assert found == dict.fromkeys(("enforcer", "standby"), expected)


def test_what_a_component_says_wins_over_what_the_nodes_say(helm: Helm, plain: Objects) -> None:
    nodes = {
        "podLabels": {"a": "1", "b": "1"},
        "nodeSelector": {"c": "1"},
        "tolerations": [{"key": "d"}],
        "priorityClassName": "e",
        "imagePullSecrets": ["f"],
    }
    enforcer = {
        "podLabels": {"b": "2"},
        "nodeSelector": {"c": "2", "empty": ""},
        "tolerations": [{"key": "g"}],
        "priorityClassName": "h",
        "imagePullSecrets": ["i"],
        "securityContext": {"readOnlyRootFilesystem": False, "runAsUser": None},
    }
    found = changes(plain, rendered(helm, {"nodes": nodes, "enforcer": enforcer}))
    assert found.keys() == {"enforcer", "standby"}
    assert found["standby"] == {
        "metadata.labels.a": "1",
        "metadata.labels.b": "1",
        "spec.nodeSelector.c": "1",
        "spec.tolerations": [{"key": "d"}],
        "spec.priorityClassName": "e",
        "spec.imagePullSecrets.f.name": "f",
    }
    assert found["enforcer"] == {
        "metadata.labels.a": "1",
        "metadata.labels.b": "2",
        "spec.nodeSelector.c": "2",
        "spec.nodeSelector.empty": "",
        "spec.tolerations": [{"key": "g"}],
        "spec.priorityClassName": "h",
        "spec.imagePullSecrets.i.name": "i",
        "container.securityContext.readOnlyRootFilesystem": False,
        "container.securityContext.runAsUser": None,
    }


def test_the_operators_replicas_spread_as_the_values_say(helm: Helm, plain: Objects) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
    }
    found = changes(plain, rendered(helm, {"operator": {"topologySpreadConstraints": [spread]}}))
    assert found == {"operator": {"spec.topologySpreadConstraints": [spread]}}
    nothing: Object = {"affinity": {"podAntiAffinity": {}}}
    found = changes(plain, rendered(helm, {"operator": nothing}))
    assert found["operator"]["spec.affinity.podAntiAffinity"] == {}


def test_a_user_of_a_pod_is_taken_away_or_large(helm: Helm, plain: Objects) -> None:
    """As on OpenShift, whose namespaces have ranges of UIDs."""
    given = {"operator": {"podSecurityContext": {"runAsUser": None, "runAsGroup": 1000690000}}}
    expected = {
        "spec.securityContext.runAsUser": ABSENT,
        "spec.securityContext.runAsGroup": 1000690000,
    }
    found = changes(plain, rendered(helm, given))
    assert found == {"operator": expected, "test": expected}


def test_common_labels_are_on_every_object_and_every_pod(helm: Helm, plain: Objects) -> None:
    given = {
        "commonLabels": {"team": "a"},
        "operator": {"podLabels": {"team": "b"}},
        "podMonitor": {"enabled": True, "labels": {"team": "c"}},
    }
    after = rendered(helm, given)
    expected = {name: {"metadata.labels.team": "a"} for name in leaves(plain)}
    expected |= {name: {"metadata.labels.team": "b"} for name in ("operator", "test")}
    found = changes(plain, after)
    assert found.pop("PodMonitor/numapin")["metadata.labels.team"] == "c"
    assert found == expected


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            {"operator": {"extraArgs": ["--log-format=text"]}},
            "operator.extraArgs: --log-format=text would override --log-format=json of the chart; "
            "the value that changes it: logFormat",
        ),
        (
            {"operator": {"extraArgs": ["--annotate-refusals"]}, "refusals": {"annotate": False}},
            "--annotate-refusals would override --no-annotate-refusals of the chart; the value "
            "that changes it: refusals.annotate",
        ),
        (
            {"enforcer": {"extraArgs": ["--state-dir", "/tmp"]}},
            "enforcer.extraArgs: --state-dir would override --state-dir=/var/lib/numapin of the "
            "chart; the value that changes it: none: it fits the rest of the chart",
        ),
        (
            {"standby": {"extraArgs": ["--no-realtime-priority"]}},
            "the value that changes it: nodes.realtimePriority",
        ),
        (
            {"enforcer": {"extraEnv": [{"name": "NUMAPIN_LOG_FORMAT", "value": "text"}]}},
            "enforcer.extraEnv: NUMAPIN_LOG_FORMAT would have no effect beside --log-format=json",
        ),
        (
            {"enforcer": {"extraEnv": [{"name": "NODE_NAME", "value": "text"}]}},
            "enforcer.extraEnv: NODE_NAME is set by the chart",
        ),
        (
            {"enforcer": {"serviceAccount": {"name": "numapin-operator"}}},
            "enforcer.serviceAccount.name: numapin-operator is the account of another component",
        ),
        (
            {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}},
            "podMonitor.enabled and serviceMonitor.enabled: each sample would be there twice",
        ),
    ],
)
def test_what_would_silently_do_something_else_is_refused(
    helm: Helm, values: Object, told: str
) -> None:
    assert told in " ".join(helm.refusal(values).split())


def test_a_variable_of_an_argument_that_the_chart_does_not_give_is_taken(helm: Helm) -> None:
    given = [{"name": "NUMAPIN_LOG_LEVEL", "value": "debug"}]
    operator = rendered(helm, {"operator": {"extraEnv": given}})["Deployment", "numapin-operator"]
    (container,) = operator["spec"]["template"]["spec"]["containers"]
    assert container["env"][1:] == given


def test_the_api_server_takes_all_of_it_at_once(helm: Helm, installed: Kubectl) -> None:
    def every(component: str) -> Object:
        found = {name: given for name, (given, _) in (IN_EACH_POD | IN_ITS_PODS).items()}
        found["serviceAccount"] = {"name": f"an-{component}", "annotations": {"a": "b"}}
        expressions = [{"key": "virtual", "operator": "DoesNotExist"}]
        term = {"matchExpressions": expressions}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        found["affinity"] = {"nodeAffinity": required}
        return found | {"tolerations": [{"key": "a", "operator": "Exists"}]}

    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app.kubernetes.io/component": "operator"}},
    }
    values: Object = {one: every(one) for one in COMPONENTS}
    values["operator"]["topologySpreadConstraints"] = [spread]
    values |= {"fullnameOverride": "pins", "commonLabels": {"team": "a"}}
    values |= {"networkPolicies": {"egressPorts": [443]}, "viewer": {"aggregateToView": True}}
    objects = helm.with_values(values)
    del objects["Pod", "pins-test"]  # its account would have to be there
    services = rendered(helm, {"fullnameOverride": "pins", "serviceMonitor": {"enabled": True}})
    objects |= {key: body for key, body in services.items() if key[0] == "Service"}
    text = yaml.safe_dump_all(objects.values())
    strict = ("--dry-run=server", "--validate=strict", "--force-conflicts")
    applied = installed("apply", "--server-side", *strict, "-f", "-", text=text)
    assert applied.count("serverside-applied (server dry run)") == len(objects)

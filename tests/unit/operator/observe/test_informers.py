from numapin_operator.observe.informers import decode_pod
from support.values.operator import pod_body, pod_view


def test_a_pod_that_cannot_be_parsed_shares() -> None:
    body = pod_body("a", "two")
    pod = decode_pod(body)
    assert (pod.name, pod.node, pod.qos, pod.containers) == ("a", "node-1", "BestEffort", ())
    assert decode_pod(pod_body("b")) == pod_view("b")

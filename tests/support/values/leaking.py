"""A pod with secrets in every place that has some."""

import json

from support.values.operator import Body

CANARY = "s3cr3t-canary"


def leaking(body: Body) -> Body:
    """A pod as a tenant writes one, with secrets in every place that has some."""
    found: Body = json.loads(json.dumps(body))
    found["metadata"]["annotations"] = {"note": CANARY}
    found["metadata"]["managedFields"] = [{"manager": CANARY}]
    found["spec"] |= {
        "volumes": [{"name": "v", "hostPath": {"path": CANARY}}],
        "imagePullSecrets": [{"name": CANARY}],
        "serviceAccountName": CANARY,
        "hostAliases": [{"ip": CANARY}],
    }
    for container in found["spec"]["containers"]:
        container |= {
            "env": [{"name": "TOKEN", "value": CANARY}],
            "envFrom": [{"secretRef": {"name": CANARY}}],
            "command": [CANARY],
            "args": [f"--password={CANARY}"],
            "image": f"registry/{CANARY}",
            "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "a", "value": CANARY}]}},
        }
    found["status"] = {
        "containerStatuses": [
            {
                "name": "main",
                "image": CANARY,
                "restartCount": 2,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": CANARY}},
            }
        ],
        "podIP": CANARY,
        "conditions": [{"type": "Ready", "status": "False", "message": CANARY}],
        "message": CANARY,
    }
    return found

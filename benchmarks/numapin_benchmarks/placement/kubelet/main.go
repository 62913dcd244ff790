// Command kubelet answers scenarios with the kubelet's own managers, and says how long each pod took.
//
// It reads one scenario a line on standard input (the machine inline under "topology") and writes one
// answer a line, in the form that `numapin simulate` uses, with "nanoseconds" beside each added pod.
// Only exported constructors of Kubernetes are called, but for the one in devices.go; logs are
// discarded and the state files lie
// in TMPDIR, which whoever asks puts in memory, so that the managers' own work is what is measured,
// and removes, so that nothing is left of a program that hangs and is killed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
)

var gates = map[string]bool{
	"CPUManagerPolicyAlphaOptions":      true,
	"CPUManagerPolicyBetaOptions":       true,
	"TopologyManagerPolicyAlphaOptions": true,
	"TopologyManagerPolicyBetaOptions":  true,
	"PodLevelResources":                 true,
	"PodLevelResourceManagers":          true,
}

func main() {
	klog.SetLogger(logr.Discard())
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		fail(err)
	}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			var asked scenario
			if problem := json.Unmarshal(line, &asked); problem != nil {
				fail(problem)
			}
			if problem := out.Encode(answer(context.Background(), asked)); problem != nil {
				fail(problem)
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "kubelet:", err)
	os.Exit(1)
}

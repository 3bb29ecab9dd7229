// Command k8s is every program of a test cluster in one: etcd, kube-apiserver, kube-controller-manager, kube-scheduler
// and kwok. It is the program by whose name it is called, so that links to it stand for the five. What they have in
// common is then compiled and linked once.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // for CronJobs with a time zone

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // for the log format JSON
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // for metrics of client-go
	_ "k8s.io/component-base/metrics/prometheus/version"  // for the metric of the version
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		component(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		component(manager.NewControllerManagerCommand())
	case "kube-scheduler":
		component(scheduler.NewSchedulerCommand())
	case "kwok":
		runKwok()
	default:
		fmt.Fprintln(os.Stderr, "call this etcd, kube-apiserver, kube-controller-manager, kube-scheduler or kwok, not "+
			name)
		os.Exit(2)
	}
}

// component runs a component of Kubernetes as its own main does.
func component(command *cobra.Command) { os.Exit(cli.Run(command)) }

// runKwok does what kwok's own main does, which cannot be imported.
func runKwok() {
	// Cobra takes these for flags of its program, and the one of Kubernetes for the version is none that it can read.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsWhitelist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, logger := log.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		_, _ = os.Stderr.WriteString(flags.FlagUsages())
		logger.Error("Init config flags", err)
		os.Exit(1)
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		logger.Error("Execute exit", err)
		os.Exit(1)
	}
}

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { propertiesOf, type Template } from "../../../deploy/plugins/osls.ts";
import { WORKER_CONTAINER } from "../../../functions/core/task-state-change.ts";
import { DEFINITIONS } from "../../../shared/config/definitions.ts";
import { METRICS_NAMESPACE } from "../../../shared/metrics/names.ts";
import { assertPinned } from "../support/pinned.ts";

type Properties = Record<string, unknown>;

/** The service, its task and how it scales. */
export function workerSuite(template: Template): void {
  const task = propertiesOf(template, "WorkerTask");
  const [container, ...others] = task["ContainerDefinitions"] as Properties[];
  const service = propertiesOf(template, "WorkerService");

  describe("the worker's task", () => {
    it("runs the one container whose end proves that the worker is dead", () => {
      assert.equal(container?.["Name"], WORKER_CONTAINER);
      assert.equal(container["Essential"], true);
      assert.deepEqual(others, []);
    });

    it("has no restart policy, with which a dead worker's task id would live on", () => {
      assert.equal(container?.["RestartPolicy"], undefined);
    });

    it("runs on arm64 without root, with a file system it cannot write and no capability", () => {
      assert.deepEqual(task["RuntimePlatform"], { CpuArchitecture: "ARM64", OperatingSystemFamily: "LINUX" });
      assert.equal(container?.["User"], "1000:1000");
      assert.equal(container["ReadonlyRootFilesystem"], true);
      assert.equal(container["Privileged"], undefined);
      assert.deepEqual(container["LinuxParameters"], { InitProcessEnabled: true, Capabilities: { Drop: ["ALL"] } });
    });

    it("asks the worker's health endpoint with the image's own node", () => {
      const { Command, ...limits } = container?.["HealthCheck"] as { Command: string[] };
      assert.deepEqual(Command.slice(0, 3), ["CMD", "node", "-e"]);
      assert.equal(Command.length, 4);
      assert.ok(Command[3]?.includes(`http://127.0.0.1:${DEFINITIONS.healthPort.default}/health`));
      // A worker that lost its table for a moment is not replaced: that would cost all its leases at once.
      assert.deepEqual(limits, { Interval: 15, Timeout: 5, Retries: 3, StartPeriod: 30 });
    });

    it("may have a socket for each connection up to the cap, and more", () => {
      const [limit] = container?.["Ulimits"] as { Name: string; SoftLimit: number }[];
      assert.equal(limit?.Name, "nofile");
      assert.ok(limit.SoftLimit > 2 * Number(DEFINITIONS.maxConnections.default));
    });

    it("logs without waiting, into a group that forgets", () => {
      const { LogDriver, Options } = container?.["LogConfiguration"] as { LogDriver: string; Options: Properties };
      assert.equal(LogDriver, "awslogs");
      assert.equal(Options["mode"], "non-blocking");
      assert.deepEqual(Options["awslogs-group"], { Ref: "WorkerLogGroup" });
      for (const { Type, Properties: properties } of Object.values(template.Resources)) {
        if (Type === "AWS::Logs::LogGroup") assert.equal(properties?.["RetentionInDays"], 14);
      }
    });
  });

  describe("the worker's service", () => {
    it("has no DesiredCount, which each deployment would set back", () => {
      assert.equal(service["DesiredCount"], undefined);
    });

    it("rolls without going below its size, and back when tasks do not start", () => {
      assert.deepEqual(service["DeploymentConfiguration"], {
        MinimumHealthyPercent: 100,
        MaximumPercent: 200,
        DeploymentCircuitBreaker: { Enable: true, Rollback: true },
      });
    });

    it("has its first task, and by default every task, on Fargate and not on Spot", () => {
      assert.deepEqual(service["CapacityProviderStrategy"], [
        { CapacityProvider: "FARGATE", Base: 1, Weight: 1 },
        { CapacityProvider: "FARGATE_SPOT", Base: 0, Weight: 0 },
      ]);
    });

    it("is named as the metrics' dimension and the event rule's group say", () => {
      assert.equal(service["ServiceName"], "ws-fleet-some");
      const rule = Object.values(template.Resources).find(
        ({ Properties }) => Properties?.["EventPattern"] !== undefined,
      );
      const { detail } = rule?.Properties?.["EventPattern"] as { detail: Properties };
      assert.deepEqual(detail, {
        clusterArn: [{ "Fn::GetAtt": ["Cluster", "Arn"] }],
        group: ["service:ws-fleet-some"],
        desiredStatus: ["STOPPED"],
        lastStatus: ["DEPROVISIONING", "STOPPED"],
      });
    });

    it("lets nothing in", () => {
      assert.deepEqual(propertiesOf(template, "WorkerSecurityGroup")["SecurityGroupIngress"], []);
      assert.equal(container?.["PortMappings"], undefined);
      const types = Object.values(template.Resources).map(({ Type }) => Type);
      assert.ok(!types.includes("AWS::EC2::NatGateway"), "and needs no NAT to go out");
    });
  });

  describe("scaling", () => {
    it("aims at no more than 80 % of the cap", () => {
      const target = Number(tracking(template, "ScaleOnConnections")["TargetValue"]);
      const cap = (container?.["Environment"] as { Name: string; Value: string }[]).find(
        ({ Name }) => Name === DEFINITIONS.maxConnections.env,
      );
      assert.equal(target, Number(DEFINITIONS.targetConnections.default));
      assert.ok(target <= 0.8 * Number(cap?.Value));
    });

    it("follows the workers' own average", () => {
      assert.deepEqual(tracking(template, "ScaleOnConnections")["CustomizedMetricSpecification"], {
        Namespace: METRICS_NAMESPACE,
        MetricName: "ActiveConnections",
        Dimensions: [{ Name: "Service", Value: "ws-fleet-some" }],
        Statistic: "Average",
        Unit: "Count",
      });
    });

    it("and the queue's depth per task, by one expression alone", () => {
      const { Metrics } = tracking(template, "ScaleOnHints")["CustomizedMetricSpecification"] as {
        Metrics: { Id: string; Expression?: string; ReturnData: boolean }[];
      };
      assert.deepEqual(
        Metrics.filter(({ ReturnData }) => ReturnData).map(({ Expression }) => Expression),
        ["IF(tasks > 1, hints / tasks, hints)"],
      );
      assert.deepEqual(
        Metrics.map(({ Id }) => Id),
        ["hints", "tasks", "hints_per_task"],
      );
    });

    it("is as pinned/scaling.json says", () => {
      const scaling = ["WorkerScaling", "ScaleOnConnections", "ScaleOnHints"].map(
        (id) => [id, propertiesOf(template, id)] as const,
      );
      assertPinned("scaling", Object.fromEntries(scaling));
    });

    it("goes out fast and in slowly", () => {
      for (const policy of ["ScaleOnConnections", "ScaleOnHints"]) {
        const { ScaleOutCooldown, ScaleInCooldown, DisableScaleIn } = tracking(template, policy);
        assert.deepEqual([ScaleOutCooldown, ScaleInCooldown, DisableScaleIn], [120, 900, undefined], policy);
      }
    });
  });
}

function tracking(template: Template, policy: string): Properties {
  return propertiesOf(template, policy)["TargetTrackingScalingPolicyConfiguration"] as Properties;
}

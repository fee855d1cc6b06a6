"""Decisions and averages of Ray Serve's own autoscaler -> packages/cluster/fixtures/ray-autoscaling.json.

Needs ray[serve]==2.60.0. Each case is a random configuration with a sequence of moments; the policy keeps its state between them,
and the decision, clipped to the bounds as Ray's controller does, is the next moment's target.
"""

import json
import random
from pathlib import Path
from unittest import mock

import ray.serve.autoscaling_policy as rule
from ray.serve._private.common import TimeStampedValue
from ray.serve._private.metrics_utils import aggregate_timeseries
from ray.serve.config import AggregationFunction, AutoscalingConfig, AutoscalingContext

OUT = Path(__file__).resolve().parents[2] / "packages/cluster/fixtures/ray-autoscaling.json"
POLICY = rule._apply_autoscaling_config(rule.replica_queue_length_autoscaling_policy)


def decide(config, running, target, total, now, state):
    context = AutoscalingContext(
        deployment_id=None, deployment_name="", app_name="", current_num_replicas=running, target_num_replicas=target,
        running_replicas=[], total_num_requests=total, total_queued_requests=0, aggregated_metrics={}, raw_metrics={},
        capacity_adjusted_min_replicas=config.min_replicas, capacity_adjusted_max_replicas=config.max_replicas,
        policy_state=state, last_scale_up_time=None, last_scale_down_time=None, current_time=now, config=config,
    )
    with mock.patch.object(rule.time, "time", lambda: now):
        decision, state = POLICY(context)
    return max(config.min_replicas, min(config.max_replicas, decision)), state


def case(draw):
    least = draw.choice([0, 0, 1, 1, 2, 5])
    fields = {
        "min_replicas": least,
        "max_replicas": max(1, least + draw.choice([0, 1, 3, 10, 100])),
        "target_ongoing_requests": draw.choice([2, 1, 0.5, 3.3, 16]),
        "upscaling_factor": draw.choice([1, 1, 0.3, 0.5, 2]),
        "downscaling_factor": draw.choice([1, 1, 0.1, 0.5, 1.5]),
        "upscale_delay_s": draw.choice([30, 0, 1, 5]),
        "downscale_delay_s": draw.choice([600, 0, 2, 10]),
    }
    if draw.random() < 0.3:
        fields["downscale_to_zero_delay_s"] = draw.choice([0, 3, 20])
    config = AutoscalingConfig(**fields)
    target, now, state, moments = max(least, draw.choice([0, 1, 2])), 1000.0, {}, []
    target = min(target, config.max_replicas)
    level = draw.choice([0.0, 4.0, 40.0])
    for _ in range(40):
        now = round(now + draw.choice([0.1, 0.1, 0.5, 2, 7, 40]), 3)
        if draw.random() < 0.2:
            level = draw.choice([0.0, 0.2, 1.0, 3.0, 7.5, 20.0, 63.7, 400.0])
        total = level if draw.random() < 0.5 else round(level * draw.uniform(0.8, 1.2), 3)
        # those that were decided long ago run; the last ones may still start, or be stopping
        running = draw.choice([target, target, target, max(0, target - 1), target + 1, 0])
        before = target
        target, state = decide(config, running, before, total, now, state)
        moments.append([now, running, before, total, target])
    return {"config": fields, "moments": moments}


def average(draw):
    times = sorted(round(draw.uniform(0, 30), 3) for _ in range(draw.randint(1, 12)))
    values = [float(draw.choice([0, 1, 2, 5, 17])) for _ in times]
    end = round(times[-1] + draw.uniform(0.001, 9), 3)
    series = [TimeStampedValue(at, value) for at, value in zip(times, values)]
    found = {f.value: aggregate_timeseries(series, f, last_window_s=end - times[-1]) for f in AggregationFunction}
    return {"times": times, "values": values, "end": end, "expected": found}


def main():
    draw = random.Random(21)
    data = {"cases": [case(draw) for _ in range(60)], "averages": [average(draw) for _ in range(40)]}
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(data, separators=(",", ":")).replace('{"config"', '\n{"config"').replace('{"times"', '\n{"times"') + "\n")


main()

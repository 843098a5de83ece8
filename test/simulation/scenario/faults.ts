import { lasting, type FaultContext, type FaultName } from "./fault.ts";
import { ON_SURROUNDINGS } from "./on-surroundings.ts";
import { ON_TASKS } from "./on-tasks.ts";
import { ON_UPSTREAMS } from "./on-upstreams.ts";

/** Lets it happen to whatever is drawn; nothing happens when nothing of that kind is there. */
export function strike(name: FaultName, context: FaultContext): void {
  const { fleet, seeded } = context;
  const onTask = ON_TASKS[name];
  const onUpstream = ON_UPSTREAMS[name];
  const surroundings = ON_SURROUNDINGS[name]?.(context);
  fleet.tally.add(`fault: ${name}`);
  if (onTask !== undefined) {
    // A deployment does not ask whether a worker hangs.
    const mayBeFrozen = name === "drain" || name === "crash" || name === "host-lost" || name === "wall-step";
    const tasks = fleet.tasks.filter((task) => task.alive && (mayBeFrozen || !task.worker.frozen));
    if (tasks.length > 0) onTask(context, seeded.pick(tasks));
  } else if (onUpstream !== undefined) {
    onUpstream(context, seeded.pick(fleet.upstreams));
  } else if (surroundings !== undefined) {
    const [begin, end] = surroundings;
    lasting(
      context,
      2000,
      45_000,
      () => {
        fleet.history.add("world", undefined, name);
        begin();
      },
      () => {
        fleet.history.add("world", undefined, `end of ${name}`);
        end();
      },
    );
  }
}

import { compareReplay } from "../audit/compare.ts";
import { compareLive, type Fault } from "../audit/compare-live.ts";
import { readMessages, type MessagesSource, type StoredMessages } from "../audit/read-messages.ts";
import type { ConnectionRecord } from "../upstream/record.ts";
import type { Transcript } from "../upstream/transcript.ts";

export interface MessageFigures {
  /** Segments that the upstream sent (feeds that replay) or spoke (feeds that cannot), each counted once. */
  readonly sent: number;
  readonly stored: number;
  /** Not stored, and nothing excuses it. */
  readonly missing: number;
  readonly duplicated: number;
  /** Rows that hold something else than was sent, or that cannot be read. */
  readonly differing: number;
  /** Rows of feeds that cannot replay that stand behind a later segment. */
  readonly disordered: number;
  /** Runs of segments of feeds that cannot replay that nobody could hear, and their number. */
  readonly gaps: number;
  readonly gapMessages: number;
}

/** Whose epoch a row carries and when it was received: what the ownership audit needs of it. */
export interface RowTrace {
  readonly connectionId: string;
  readonly leaseEpoch: number;
  readonly receivedAtMs: number;
}

export interface TranscriptAudit {
  readonly messages: MessageFigures;
  readonly rows: readonly RowTrace[];
  /** The first findings, in words. */
  readonly examples: readonly string[];
}

export interface TranscriptAuditInput {
  readonly source: MessagesSource;
  readonly transcripts: readonly Transcript[];
  /** Asked again when something is missing: a feed that cannot replay may have spoken on. */
  readonly recordOf: (connectionId: string) => ConnectionRecord | undefined;
  readonly faults: readonly Fault[];
  readonly graceMs: number;
  /** Waits before the connection is read once more; false: no more time. What is on its way is not missing. */
  readonly again: () => Promise<boolean>;
  readonly onProgress?: (done: number, missing: number) => void;
}

/** Connections read at the same time. */
const IN_FLIGHT = 6;
const MAX_EXAMPLES = 20;

/** Compares what is stored of each connection with the speech itself. */
export async function auditTranscripts(input: TranscriptAuditInput): Promise<TranscriptAudit> {
  const total = { sent: 0, stored: 0, missing: 0, duplicated: 0, differing: 0, disordered: 0, gaps: 0, gapMessages: 0 };
  const rows: RowTrace[] = [];
  const examples: string[] = [];
  const queue = [...input.transcripts];
  let done = 0;
  const lane = async (): Promise<void> => {
    for (let transcript = queue.shift(); transcript !== undefined; transcript = queue.shift()) {
      const { figures, stored, found } = await auditOne(input, transcript);
      for (const name of Object.keys(total) as (keyof MessageFigures)[]) total[name] += figures[name];
      for (const { leaseEpoch, receivedAtMs } of stored.messages) {
        rows.push({ connectionId: transcript.connectionId, leaseEpoch, receivedAtMs });
      }
      for (const { seq, reason } of stored.damaged) {
        found.push(`${transcript.connectionId}: row ${seq} is damaged: ${reason}`);
      }
      examples.push(...found.slice(0, MAX_EXAMPLES - examples.length));
      input.onProgress?.((done += 1), total.missing);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  return { messages: total, rows, examples };
}

interface OneAudit {
  readonly figures: MessageFigures;
  readonly stored: StoredMessages;
  readonly found: string[];
}

async function auditOne(input: TranscriptAuditInput, transcript: Transcript): Promise<OneAudit> {
  for (;;) {
    const stored = await readMessages(input.source, transcript.connectionId);
    const audit = compare(input, transcript, stored);
    if (audit.figures.missing === 0 || !(await input.again())) return audit;
  }
}

function compare(input: TranscriptAuditInput, transcript: Transcript, stored: StoredMessages): OneAudit {
  const record = input.recordOf(transcript.connectionId);
  if (record === undefined) throw new Error(`${transcript.connectionId} is not in the upstream's record`);
  const damaged = stored.damaged.length;
  if (transcript.kind === "live") {
    const { faults, graceMs } = input;
    const live = compareLive({ transcript, record, rows: stored.messages, faults, graceMs });
    const { stored: count, missing, duplicated, disordered, gaps, gapSegments } = live;
    return {
      figures: {
        sent: live.spoken,
        stored: count,
        missing,
        duplicated,
        differing: live.differing + damaged,
        disordered,
        gaps,
        gapMessages: gapSegments,
      },
      stored,
      found: [...live.examples],
    };
  }
  const replay = compareReplay(transcript, record.sent, stored.messages);
  const { sent, stored: count, missing, duplicated } = replay;
  const differing = replay.differing + damaged;
  return {
    figures: { sent, stored: count, missing, duplicated, differing, disordered: 0, gaps: 0, gapMessages: 0 },
    stored,
    found: [...replay.examples],
  };
}

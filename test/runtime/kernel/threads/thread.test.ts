import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { ActorUnavailable } from '../../../../runtime/kernel/actor.js'
import { createLogger } from '../../../../runtime/kernel/log.js'
import { createMetrics } from '../../../../runtime/kernel/metrics/metrics.js'
import { StreamAborted } from '../../../../runtime/kernel/stream.js'
import { spawnThread } from '../../../../runtime/kernel/threads/thread.js'
import { probeActor } from '../probe.js'
import { placeProbe } from '../probe-places.js'

const entry = new URL('./probe-thread.js', import.meta.url)

const reasonOf = async (answer: Promise<unknown>) => {
  const error = await answer.then(
    () => 'an answer',
    (error: unknown) => error,
  )
  return error instanceof ActorUnavailable ? error.reason : error
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5))
}

function logbook() {
  const lines: Record<string, unknown>[] = []
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) }
  return { lines, log: createLogger({ level: 'info', destination }) }
}

test('when the thread exits, running messages fail as restarted, and the next thread serves waiting ones', async (t) => {
  const { lines, log } = logbook()
  const { ref, stats, stop } = await placeProbe(t, 'thread', { log })
  const lost = Array.from({ length: 7 }, () =>
    reasonOf(ref.wait({ ms: 3_600_000 }, { timeoutMs: 3_600_000 })),
  )
  const exit = reasonOf(ref.exit({ code: 3 }))
  const waiting = Array.from({ length: 5 }, (_, value) => ref.square({ value }))
  t.is(await exit, 'restarted')
  t.deepEqual([...new Set(await Promise.all(lost))], ['restarted'])
  t.deepEqual(
    (await Promise.all(waiting)).map(({ value }) => value),
    [0, 1, 4, 9, 16],
  )
  t.is(stats().restarts, 1)
  t.true(lines.some(({ msg }) => msg === 'thread exited, starting a new one'))
  await stop()
})

test('an idempotent message that the thread lost is sent once more', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-kernel-'))
  const { ref, stop } = await placeProbe(t, 'thread')
  const answer = await ref.exitOnce({ lives: { path: join(folder, 'lives') } })
  t.deepEqual(answer, { tag: 'survived', lives: 2 })
  await stop()
  await rm(folder, { recursive: true })
})

test('an error thrown outside of a message takes the thread down, and the next one serves', async (t) => {
  const { lines, log } = logbook()
  const { ref, stats, stop } = await placeProbe(t, 'thread', { log })
  await reasonOf(ref.throwOutside(null))
  await until(() => stats().restarts === 1)
  t.is((await ref.echo({ value: 'back again' })).value, 'back again')
  const failure = lines.find(({ msg }) => msg === 'thread failed')
  t.regex(JSON.stringify(failure), /thrown outside a message/)
  await stop()
})

test('a thread that hangs misses its heartbeat and is replaced', async (t) => {
  const { lines, log } = logbook()
  const thread = { heartbeatMs: 50, hungMs: 1_500 }
  const { ref, stop } = await placeProbe(t, 'thread', { log, thread })
  t.is(await reasonOf(ref.spin(null, { timeoutMs: 3_600_000 })), 'restarted')
  t.is((await ref.echo({ value: 'alive' })).value, 'alive')
  t.true(lines.some(({ msg }) => msg === 'thread is hung, killing it'))
  await stop()
})

test('a thread that cannot be killed is not ready while it hangs, serves again after it, and ends itself', async (t) => {
  const { lines, log } = logbook()
  const thread = { heartbeatMs: 20, hungMs: 200, canBeKilled: false }
  const { ref, readiness, stats, stop } = await placeProbe(t, 'thread', { log, thread })
  const answer = ref.block({ ms: 1_500 })
  await until(() => !readiness())
  t.is((await answer).tag, 'blocked', 'it was not killed')
  await until(() => readiness())
  t.deepEqual(
    lines.map(({ msg }) => msg),
    ['thread is hung', 'thread answers again'],
  )
  t.is(stats().restarts, 0)
  await stop()
  t.false(lines.some(({ msg }) => msg === 'thread does not end'))
})

test('a thread that dies too often makes its actors not ready, and is still restarted', async (t) => {
  const supervision = { restartsMax: 1, windowMs: 3_600_000, backoffMs: 1 }
  const { ref, readiness, stop } = await placeProbe(t, 'thread', { thread: { supervision } })
  t.true(readiness())
  await reasonOf(ref.exit({ code: 1 }))
  t.is((await ref.square({ value: 2 })).value, 4)
  t.true(readiness(), 'one death is within what is normal')
  await reasonOf(ref.exit({ code: 1 }))
  t.is((await ref.square({ value: 3 })).value, 9)
  t.false(readiness())
  await stop()
})

test('an actor that fails too often inside of its thread is not ready', async (t) => {
  const { ref, readiness, stop } = await placeProbe(t, 'thread', { thread: { heartbeatMs: 20 } })
  for (let failure = 0; failure < 6; failure += 1) await reasonOf(ref.fail({ text: 'poison' }))
  await until(() => !readiness())
  t.is((await ref.square({ value: 2 })).value, 4, 'what is healthy is still served')
  await stop()
})

test('a thread whose entry throws does not start, and reports why', async (t) => {
  const start = () =>
    spawnThread({ name: 'refusing', entry, definitions: [probeActor], startData: 'refuse' })
  await t.throwsAsync(start, { message: 'the start data says no' })
})

test('a thread whose entry cannot be loaded does not start', async (t) => {
  const missing = new URL('./no-such-entry.js', import.meta.url)
  await t.throwsAsync(spawnThread({ name: 'missing', entry: missing, definitions: [probeActor] }), {
    message: /Cannot find module/,
  })
})

test('a thread that starts at its first use answers the messages that started it', async (t) => {
  const { ref, readiness, stop } = await placeProbe(t, 'thread', {
    thread: { starts: 'at_first_use' },
  })
  t.true(readiness(), 'a thread that is not needed yet is ready')
  const answers = await Promise.all([2, 3].map((value) => ref.square({ value })))
  t.deepEqual(
    answers.map(({ value }) => value),
    [4, 9],
  )
  t.true(readiness())
  await reasonOf(ref.exit({ code: 1 }))
  t.is((await ref.square({ value: 4 })).value, 16, 'it is replaced after a death')
  await stop()
})

test('a thread that cannot start at its first use is not ready, and its message ends', async (t) => {
  const missing = new URL('./no-such-entry.js', import.meta.url)
  const { ref, readiness, stop } = await placeProbe(t, 'thread', {
    thread: { starts: 'at_first_use', entry: missing },
  })
  t.true(readiness())
  t.is(await reasonOf(ref.square({ value: 2 }, { timeoutMs: 50 })), 'deadline')
  await until(() => !readiness())
  await stop()
})

test('a passive message does not start a thread, and is answered when it runs', async (t) => {
  const metrics = createMetrics()
  const { ref, stop } = await placeProbe(t, 'thread', {
    metrics,
    thread: { starts: 'at_first_use' },
  })
  t.is(await reasonOf(ref.wait({ ms: 1 })), 'stopped')
  t.notRegex(await metrics.exposition(), /svc_actor_unavailable_total\{[^}]*"probe"[^}]*\} [1-9]/)
  t.is((await ref.square({ value: 2 })).value, 4)
  t.is(await reasonOf(ref.wait({ ms: 1 })), 'an answer')
  await stop()
})

test('a thread that starts at its first use starts when its worker has work', async (t) => {
  let used: (() => void) | undefined
  let given: AbortSignal | undefined
  const firstUse = (signal: AbortSignal) => {
    given = signal
    return new Promise<void>((resolve) => {
      used = resolve
    })
  }
  const metrics = createMetrics()
  const { stop } = await placeProbe(t, 'thread', {
    metrics,
    thread: { starts: 'at_first_use', firstUse },
  })
  const heap = async () =>
    /svc_thread_heap_used_bytes\{[^}]*\} (\d+)/.exec(await metrics.exposition())?.[1]
  t.is(await heap(), '0', 'it does not run yet')
  t.false(given!.aborted)
  used!()
  await until(async () => Number(await heap()) > 0)
  t.true(given!.aborted, 'the wait has no purpose any more')
  await stop()
})

test('a failed wait for the first use of a thread starts it, and a stop ends the wait', async (t) => {
  const failing = await placeProbe(t, 'thread', {
    thread: {
      starts: 'at_first_use',
      entry: new URL('./no-such-entry.js', import.meta.url),
      firstUse: () => Promise.reject(new Error('the database is unavailable')),
    },
  })
  await until(() => !failing.readiness())
  await failing.stop()
  let given: AbortSignal | undefined
  const waiting = await placeProbe(t, 'thread', {
    thread: {
      starts: 'at_first_use',
      firstUse: async (signal) => {
        given = signal
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      },
    },
  })
  t.false(given!.aborted)
  await waiting.stop()
  t.true(given!.aborted)
})

test('a thread that was never used stops and drains', async (t) => {
  for (const end of ['stop', 'drain'] as const) {
    const { ref, stop, drain } = await placeProbe(t, 'thread', {
      thread: { starts: 'at_first_use' },
    })
    if (end === 'drain') t.true(await drain(1_000))
    await stop()
    t.is(await reasonOf(ref.square({ value: 2 })), 'stopped')
  }
})

test('streams are aborted when their thread dies', async (t) => {
  const { ref, stop } = await placeProbe(t, 'thread')
  const { body } = await ref.produce({ bytes: 1e9, chunkBytes: 1000 })
  await body.read()
  const rest = t.throwsAsync(
    async () => {
      for await (const _chunk of body);
    },
    { instanceOf: StreamAborted },
  )
  await reasonOf(ref.exit({ code: 0 }))
  t.is((await rest)?.reason, 'restarted')
  await stop()
})

test('draining lets streams come to their end', async (t) => {
  const { ref, drain } = await placeProbe(t, 'thread')
  const { body } = await ref.produce({ bytes: 2_000_000, chunkBytes: 50_000 })
  const drained = drain(60_000)
  let bytes = 0
  for await (const chunk of body) bytes += chunk.byteLength
  t.is(bytes, 2_000_000)
  t.true(await drained)
})

test('stopping refuses the remaining messages and ends the thread', async (t) => {
  const { ref, stop } = await placeProbe(t, 'thread')
  const answer = reasonOf(ref.wait({ ms: 3_600_000 }, { timeoutMs: 3_600_000 }))
  await ref.echo({ value: 1 })
  await stop()
  t.is(await answer, 'stopped')
  t.is(await reasonOf(ref.echo({ value: 1 })), 'stopped')
})

test('256 MiB pass through a thread with a slow reader in constant memory', async (t) => {
  const { ref, stop } = await placeProbe(t, 'thread')
  const total = 256 * 1024 * 1024
  const { body } = await ref.produce({ bytes: total, chunkBytes: 65_536 })
  let bytes = 0
  while (bytes < 8_000_000) bytes += (await body.read())!.byteLength
  const before = process.memoryUsage.rss()
  let peak = before
  for await (const chunk of body) {
    bytes += chunk.byteLength
    if (bytes % (1024 * 1024) < 65_536) {
      peak = Math.max(peak, process.memoryUsage.rss())
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  t.is(bytes, total)
  const grownMiB = (peak - before) / 1024 / 1024
  t.true(grownMiB < 128, `grew by ${grownMiB.toFixed()} MiB`)
  await stop()
})

test("the exposition has the actor, its thread, and the thread's own metrics", async (t) => {
  const metrics = createMetrics()
  const { ref, stop } = await placeProbe(t, 'thread', { metrics })
  await ref.echo({ value: 1 })
  const text = await metrics.exposition()
  t.regex(text, /svc_actor_answered_total\{actor="probe"\} 1\n/)
  t.regex(text, /svc_thread_up\{thread="probing"\} 1\n/)
  t.regex(text, /svc_actor_service_seconds_count\{actor="probe"\} 1\n/)
  await stop()
  t.notRegex(await metrics.exposition(), /svc_thread_up/)
})

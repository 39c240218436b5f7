/** One suite for every place: an actor behaves the same in all of them. */
import { createHash } from 'node:crypto'
import test from 'ava'
import { ActorUnavailable } from '../../../runtime/kernel/actor.js'
import { createLogger } from '../../../runtime/kernel/log.js'
import { bytePipe, ByteStream, StreamAborted } from '../../../runtime/kernel/stream.js'
import { PLACES, placeProbe } from './probe-places.js'

const reasonOf = async (answer: Promise<unknown>) => {
  const error = await answer.then(
    () => 'an answer',
    (error: unknown) => error,
  )
  return error instanceof ActorUnavailable ? `${error.actor}: ${error.reason}` : error
}

/**
 * Waits until `holds`, without a limit: the test runner's limit is the only one that a slow machine
 * needs.
 */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5))
}

for (const place of PLACES) {
  test(`${place}: plain data arrives as it was sent, and is answered the same way`, async (t) => {
    const { ref, stop } = await placeProbe(t, place)
    const value = {
      text: 'grüß dich \u{1f30d}',
      numbers: [0, -1, 2 ** 40, 0.1],
      when: new Date(1_800_000_000_000),
      bytes: Uint8Array.of(1, 2, 255),
      nothing: null,
      absent: undefined,
      big: 2n ** 70n,
    }
    t.deepEqual(await ref.echo({ value }), { tag: 'echo', value })
    await stop()
  })

  test(`${place}: a Buffer arrives as a Uint8Array`, async (t) => {
    const { ref, stop } = await placeProbe(t, place)
    const { value } = await ref.echo({ value: Buffer.from('abc') })
    t.is((value as Uint8Array).constructor, Uint8Array)
    await stop()
  })

  test(`${place}: computes`, async (t) => {
    const { ref, stop } = await placeProbe(t, place)
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, value) => ref.square({ value })),
    )
    t.deepEqual(
      answers.map(({ value }) => value),
      [0, 1, 4, 9, 16, 25, 36, 49],
    )
    await stop()
  })

  test(`${place}: an error reaches the caller only as failed`, async (t) => {
    const { ref, stop } = await placeProbe(t, place)
    t.is(await reasonOf(ref.fail({ text: 'inner detail' })), 'probe: failed')
    t.is((await ref.echo({ value: 1 })).tag, 'echo')
    await stop()
  })

  test(`${place}: an unavailable dependency has its own reason, and is not a failure of the actor`, async (t) => {
    const lines: Record<string, unknown>[] = []
    const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>)
    const log = createLogger({ level: 'warn', destination: { write } })
    const heartbeatMs = 20
    const { ref, stats, readiness, stop } = await placeProbe(t, place, {
      log,
      thread: { heartbeatMs },
    })
    ref.send('remember', { value: 'before' })
    // More often than the supervisor accepts as normal.
    for (let context = 0; context < 20; context += 1) {
      const lacking = ref.lack({ text: 'gone' }, { requestId: `req-${context}` })
      t.is(await reasonOf(lacking), 'probe: dependency')
    }
    await new Promise((resolve) => setTimeout(resolve, 10 * heartbeatMs))
    t.true(readiness())
    t.deepEqual((await ref.recall(null)).values, ['before'], 'the instance is the same')
    t.like(stats().unavailable, { dependency: 20, failed: 0 })
    t.is(stats().restarts, 0)
    await until(() => lines.length === 20)
    const WARN = 40
    t.true(lines.every(({ level }) => level === WARN))
    t.like(lines[7], { actor: 'probe', request_id: 'req-7', kind: 'lack' })
    t.like(lines[7]!['err'], { type: 'SourceUnavailable', message: 'gone' })
    // The same number of defects is too many.
    for (let context = 0; context < 20; context += 1) await reasonOf(ref.fail({ text: 'broken' }))
    await until(() => !readiness())
    await stop()
  })

  test(`${place}: messages of a lane run one after another, others concurrently`, async (t) => {
    const { ref, stop } = await placeProbe(t, place)
    const endless = { ms: 3_600_000, lane: 'x' }
    const cancel = new AbortController()
    const first = reasonOf(
      ref.wait({ ...endless, label: 'x1' }, { signal: cancel.signal, timeoutMs: 3_600_000 }),
    )
    const second = ref.wait({ ms: 0, lane: 'x', label: 'x2' })
    const other = ref.wait({ ms: 0, lane: 'y', label: 'y1' })
    await other
    const { started } = await ref.count(null)
    t.deepEqual(started, ['x1', 'y1'])
    cancel.abort()
    t.is(await first, 'probe: cancelled')
    await second
    t.is(
      await reasonOf(ref.wait({ ...endless, label: 'x3' }, { timeoutMs: 50 })),
      'probe: deadline',
    )
    const after = await ref.count(null)
    t.deepEqual(after.started.slice(0, 3), ['x1', 'y1', 'x2'])
    t.true(after.cancelled >= 1, 'the signal of the handler was aborted')
    await stop()
  })

  test(`${place}: a full mailbox refuses without waiting and loses no accepted message`, async (t) => {
    const { ref, stats, stop } = await placeProbe(t, place)
    const cancel = new AbortController()
    const running = Array.from({ length: 8 }, () =>
      reasonOf(ref.wait({ ms: 3_600_000 }, { signal: cancel.signal, timeoutMs: 3_600_000 })),
    )
    const waiting = Array.from({ length: 16 }, (_, value) => ref.square({ value }))
    t.is(await reasonOf(ref.square({ value: 99 })), 'probe: mailbox_full')
    t.is(stats().waiting, 16)
    cancel.abort()
    t.deepEqual([...new Set(await Promise.all(running))], ['probe: cancelled'])
    t.is((await Promise.all(waiting)).length, 16)
    t.is(stats().unavailable.mailbox_full, 1)
    await stop()
  })

  test(`${place}: cancelling reaches the handler and the actor that it asks`, async (t) => {
    const { ref, stalls, stop } = await placeProbe(t, place)
    const cancel = new AbortController()
    const { signal } = cancel
    const answer = reasonOf(ref.askBackSlowly({ ms: 3_600_000 }, { signal }))
    await until(() => stalls.length === 1)
    t.false(stalls[0]!.aborted)
    cancel.abort()
    t.is(await answer, 'probe: cancelled')
    await until(() => stalls[0]!.aborted)
    t.true(stalls[0]!.aborted)
    await stop()
  })

  test(`${place}: sent messages arrive in order`, async (t) => {
    const { ref, stop } = await placeProbe(t, place)
    for (const value of ['a', 'b', 'c', 'd']) ref.send('remember', { value })
    t.deepEqual((await ref.recall(null)).values, ['a', 'b', 'c', 'd'])
    await stop()
  })

  test(`${place}: the request id is passed to the asked actor`, async (t) => {
    const { ref, stop } = await placeProbe(t, place)
    const answer = await ref.askBack({ value: 'hello' }, { requestId: 'req-1' })
    t.deepEqual(answer, { tag: 'asked', answer: 'hello!', requestId: 'req-1' })
    await stop()
  })

  test(`${place}: log lines carry actor and request id and end in the main log, redacted`, async (t) => {
    const lines: string[] = []
    const log = createLogger({ level: 'info', destination: { write: (line) => lines.push(line) } })
    const { ref, stop } = await placeProbe(t, place, { log })
    await ref.complain({ text: 'oh dear' }, { requestId: 'req-2' })
    await until(() => lines.length > 0)
    const { actor, request_id, msg, password } = JSON.parse(lines[0]!) as Record<string, string>
    t.deepEqual(
      { actor, request_id, msg, password },
      {
        actor: 'probe',
        request_id: 'req-2',
        msg: 'oh dear',
        password: '[secret]',
      },
    )
    await stop()
  })

  test(`${place}: a stream in a message is read to its end`, async (t) => {
    const { ref, stop } = await placeProbe(t, place)
    const bytes = new Uint8Array(3_000_000).map((_, index) => index % 251)
    const chunks = [bytes.subarray(0, 10), bytes.subarray(10, 1_500_000), bytes.subarray(1_500_000)]
    const { bytes: total, sha256 } = await ref.digest({ body: ByteStream.from(chunks) })
    t.is(total, bytes.byteLength)
    t.is(sha256, createHash('sha256').update(bytes).digest('hex'))
    await stop()
  })

  test(`${place}: a reply can contain a stream, also the one that was sent`, async (t) => {
    const { ref, stop } = await placeProbe(t, place)
    const { body } = await ref.relay({
      body: ByteStream.from(Buffer.from('there and back')),
    })
    const parts: Uint8Array[] = []
    for await (const chunk of body) parts.push(chunk)
    t.is(Buffer.concat(parts).toString(), 'there and back')
    await stop()
  })

  test(`${place}: the reader of a stream learns that its writer aborted`, async (t) => {
    const { ref, stop } = await placeProbe(t, place)
    const { body } = await ref.breakOff({ after: 10 })
    const error = await t.throwsAsync(async () => {
      for await (const _chunk of body);
    })
    t.true(error instanceof StreamAborted)
    t.is((error as StreamAborted).reason, 'upstream gone')
    await stop()
  })

  test(`${place}: the writer of a stream learns that its reader gave up`, async (t) => {
    const { ref, stop } = await placeProbe(t, place)
    const { stream, writer } = bytePipe({ windowBytes: 1000 })
    const reasons: string[] = []
    writer.onCancel = (reason) => reasons.push(reason)
    const { body } = await ref.relay({ body: stream })
    await writer.write(new Uint8Array(10))
    await body.read()
    body.cancel('had enough')
    await until(() => reasons.length > 0)
    t.deepEqual(reasons, ['had enough'])
    await t.throwsAsync(writer.write(new Uint8Array(1)), { instanceOf: StreamAborted })
    await stop()
  })

  test(`${place}: a slow reader holds its writer back`, async (t) => {
    const { ref, stop } = await placeProbe(t, place)
    let produced = 0
    async function* endless() {
      for (;;) {
        produced += 16_384
        yield new Uint8Array(16_384)
      }
    }
    const { body } = await ref.relay({ body: ByteStream.from(endless()) })
    for (let read = 0; read < 4_000_000; read += (await body.read())!.byteLength);
    await new Promise((resolve) => setTimeout(resolve, 100))
    const ahead = produced - 4_000_000
    t.true(ahead < 2_000_000, `${ahead} bytes ahead`)
    body.cancel()
    await stop()
  })

  test(`${place}: draining finishes accepted messages and refuses the rest`, async (t) => {
    const { ref, drain } = await placeProbe(t, place)
    const answers = Array.from({ length: 12 }, (_, value) => ref.square({ value }))
    const drained = drain(60_000)
    t.is(await reasonOf(ref.square({ value: 1 })), 'probe: stopped')
    t.is((await Promise.all(answers)).length, 12)
    t.true(await drained)
  })
}

/** Own service: it ends a thread of the process. */
/**
 * The thread that signs and sends is ended repeatedly while the process lives on: nothing is lost,
 * and repeated deliveries have the same delivery id. 150 events and 3 ends. With TEST_LONG 2,000
 * and 20.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import test from 'ava'
import { type Received, startReceiver } from '../../support/webhooks/receiver.js'
import { ownService } from '../../support/service/own-service.js'
import { subscriber } from '../../support/webhooks/webhooks.js'
import { IS_LONG } from '../../support/runs.js'

const EVENTS = IS_LONG ? 2_000 : 150
const ENDS = IS_LONG ? 20 : 3

test(`of ${EVENTS} events none is lost to ${ENDS} ends of the thread`, async (t) => {
  t.timeout(IS_LONG ? 1_200_000 : 240_000)
  const accepted = new Map<string, string[]>()
  const receiver = await startReceiver((request: Received) => {
    const { event_id: eventId } = JSON.parse(request.body.toString()) as { event_id: string }
    const ids = accepted.get(eventId) ?? []
    accepted.set(eventId, [...ids, String(request.headers['x-svc-delivery'])])
    // So that attempts are always in progress.
    return (response) => void setTimeout(() => response.writeHead(200).end(), 5)
  })
  const environment = {
    SVC_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: 'true',
    SVC_WEBHOOKS__CA_PEM_PATH: receiver.certificate.certPath,
    SVC_SECURITY__WEBHOOK_ALLOW_NON_STANDARD_PORTS: 'true',
  }
  const running = await ownService({
    environment: { ...environment, SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false' },
  })
  const { subscribe, emit, ask } = await subscriber(running, receiver)
  const { at } = await subscribe()

  const threads: Worker[] = []
  const onThread = (thread: Worker) => void threads.push(thread)
  process.on('worker', onThread)
  const worker = await ownService({
    peerOf: running,
    environment: { ...environment, SVC_RUNTIME_PLANE: 'async' },
  })
  t.teardown(async () => {
    process.off('worker', onThread)
    await worker.end()
    await running.end()
    await receiver.close()
  })
  // It starts once the process has seen the subscription.
  for (let turn = 0; threads.length === 0 && turn < 3_000; turn += 1) await sleep(10)
  t.is(threads.length, 1, 'the async plane has the one thread, which sends')

  const written = new Set<string>()
  const writing = (async () => {
    while (written.size < EVENTS) written.add((await emit()).id)
  })()
  const reached = async (size: number) => {
    for (let turn = 0; accepted.size < size && turn < 24_000; turn += 1) await sleep(10)
  }
  for (let end = 1; end <= ENDS; end += 1) {
    await reached((EVENTS / (ENDS + 1)) * end)
    const before = threads.length
    await threads.at(-1)!.terminate()
    for (let turn = 0; threads.length === before && turn < 3_000; turn += 1) await sleep(10)
    t.is(threads.length, before + 1, 'another thread takes its place')
  }
  await writing
  await reached(EVENTS)

  const repeated = [...accepted.values()].filter((ids) => ids.length > 1)
  t.log({ events: EVENTS, ends: ENDS, repeated: repeated.length })
  t.deepEqual(
    [...written].filter((id) => !accepted.has(id)),
    [],
    'nothing is lost',
  )
  t.true(repeated.every((ids) => new Set(ids).size === 1))
  // Attempts whose outcome was not stored when the thread ended are repeated.
  const open = async () =>
    (await Promise.all(['pending', 'retrying'].map((status) => waiting(status)))).flat()
  const waiting = async (status: string) =>
    (await ask('GET', `${at}/deliveries?status=${status}`)).body as unknown as unknown[]
  for (let turn = 0; (await open()).length > 0 && turn < 300; turn += 1) await sleep(100)
  t.deepEqual(await open(), [], 'and the history has an end for each')
  const { body } = await ask('GET', `${at}/deliveries?status=succeeded&limit=200`)
  const told = body as unknown as { id: string; event_id: string }[]
  t.is(told.length, Math.min(EVENTS, 200))
  t.true(told.every(({ id, event_id: eventId }) => accepted.get(eventId)?.includes(id)))
  // A lane has four attempts in progress. On a machine that is late to renew a lease, two workers
  // may hold the same lane.
  t.true(repeated.length <= ENDS * 8, 'no more than lanes had in hand')
})

import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { deliveriesActor } from '../../../actors/deliveries/actor.js'
import { deliveries } from '../../../actors/deliveries/protocol.js'
import { egressActor, type EgressSettings } from '../../../actors/egress/actor.js'
import { egress, type RelayRequest } from '../../../actors/egress/protocol.js'
import { ByteStream } from '../../../runtime/kernel/stream.js'
import { spawnThread } from '../../../runtime/kernel/thread.js'
import { contract } from '../../vectors/contract.js'
import { UPSTREAM_CERT, UPSTREAM_NAME } from './loopback-tls.js'
import { digestOf, startUpstream } from './upstream.js'

const MIB = 2 ** 20

async function setUp(t: ExecutionContext) {
  const upstream = await startUpstream({ tls: true })
  const folder = await mkdtemp(join(tmpdir(), 'svc-egress-'))
  const caPath = join(folder, 'ca.pem')
  await writeFile(caPath, UPSTREAM_CERT)
  const startData: EgressSettings = {
    egress_allow_private_networks: true,
    egress_allow_non_standard_ports: true,
    egress_ca_pem_path: caPath,
    egress_dns_overrides: { [UPSTREAM_NAME]: '127.0.0.1' },
  }
  const thread = await spawnThread({
    name: 'engines',
    entry: new URL('./seats.js', import.meta.url),
    definitions: [egressActor, deliveriesActor],
    startData,
  })
  t.teardown(async () => {
    await thread.stop()
    await upstream.close()
    await rm(folder, { recursive: true })
  })
  const request = (path: string, body: ByteStream | null = null): RelayRequest => ({
    target: {
      method: body === null ? 'GET' : 'POST',
      url: upstream.origin + path,
      headers: [],
      injected: ['authorization', 'Bearer secret'],
    },
    limits: { idleGapMs: 30_000, hopTimeoutMs: 60_000, byteBudget: null },
    body,
    bodyBytes: null,
  })
  return { thread, ref: thread.ref(egress), upstream, request }
}

test('on a thread, streams pass unchanged both ways and the end is told', async (t) => {
  const { ref, request } = await setUp(t)
  const down = await ref.ask('relay', request(`/bytes/${32 * MIB}`))
  if (down.tag !== 'relaying') return t.fail(JSON.stringify(down))
  const hash = createHash('sha256')
  for await (const chunk of down.body) hash.update(chunk)
  t.is(hash.digest('hex'), digestOf(32 * MIB))
  const ended = await ref.ask('ended', { relayId: down.relayId })
  t.is(ended.tag, 'ended')
  if (ended.tag === 'ended') t.like(ended.report, { outcome: 'completed', bytes: 32 * MIB })

  function* produce(): Generator<Uint8Array, void, void> {
    const chunk = Buffer.alloc(64 * 1024, 'svc ')
    for (let at = 0; at < 8 * MIB; at += chunk.length) yield new Uint8Array(chunk)
  }
  const up = await ref.ask('relay', request('/hash', ByteStream.from(produce())))
  if (up.tag !== 'relaying') return t.fail(JSON.stringify(up))
  let text = ''
  for await (const chunk of up.body) text += Buffer.from(chunk).toString()
  t.deepEqual(JSON.parse(text), { bytes: 8 * MIB, sha256: digestOf(8 * MIB) })
})

test('a reader on another thread that stops stops the upstream, and its leaving is noticed', async (t) => {
  const { ref, request, upstream } = await setUp(t)
  const outcome = await ref.ask('relay', request(`/bytes/${256 * MIB}`))
  if (outcome.tag !== 'relaying') return t.fail(JSON.stringify(outcome))
  let before = -1
  while (upstream.pushed !== before) {
    before = upstream.pushed
    await delay(300)
  }
  t.log({ pushedUnreadMib: before / MIB })
  t.true(before < 24 * MIB)
  await outcome.body.read()
  outcome.body.cancel()
  const ended = await ref.ask('ended', { relayId: outcome.relayId })
  t.is(ended.tag, 'ended')
  if (ended.tag === 'ended') t.is(ended.report.outcome, 'client_closed')
  await upstream.disconnected
})

test('an asker that gives up before the answer ends the relay on the thread', async (t) => {
  const { ref, request, upstream } = await setUp(t)
  const controller = new AbortController()
  const asked = ref.ask('relay', request('/silent'), { signal: controller.signal })
  while (upstream.requests.length === 0) await delay(5)
  controller.abort()
  await t.throwsAsync(asked, { name: 'ActorUnavailable' })
  await upstream.disconnected
  t.pass()
})

test('the signer on a thread gives the published signature', async (t) => {
  const { thread } = await setUp(t)
  const { webhook } = contract
  const outcome = await thread.ref(deliveries).ask('sign', {
    secret: webhook.secret,
    previousSecret: null,
    timestampSecs: webhook.timestamp,
    maxAgeSecs: webhook.max_age,
    deliveryId: webhook.delivery_id,
    eventType: webhook.event_type,
    payload: new Uint8Array(Buffer.from(webhook.body)),
  })
  t.is(outcome.tag, 'signed')
  if (outcome.tag === 'signed') t.is(outcome.headers['x-svc-signature-256'], webhook.signature_256)
})

/** The cost of an ask in each place, compared with code without a kernel. */
import { MessageChannel, Worker } from 'node:worker_threads'
import { type Remote, releaseProxy, wrap } from 'comlink'
import { Piscina } from 'piscina'
import { spawnInline } from '../../runtime/kernel/inline.js'
import { openPool } from '../../runtime/kernel/threads/pool.js'
import { spawnThread } from '../../runtime/kernel/threads/thread.js'
import { endpointOf } from '../../runtime/kernel/threads/thread-control.js'
import { type Contender, compare, publish, saturate } from '../harness.js'
import { type Claim, claim, type Verdict, verifier, verifierActor, verify } from './verifier.js'

const bareEntry = new URL('./bare-thread.js', import.meta.url)

/** A port, an id per ask, and one post per turn of the event loop: the minimum for batching. */
function barePort() {
  const worker = new Worker(bareEntry)
  const pending = new Map<number, (verdict: Verdict) => void>()
  let batch: [number, Claim][] = []
  let sequence = 0
  worker.on('message', (replies: [number, Verdict][]) => {
    for (const [id, verdict] of replies) {
      const resolve = pending.get(id)!
      pending.delete(id)
      resolve(verdict)
    }
  })
  const ask = (message: Claim) =>
    new Promise<Verdict>((resolve) => {
      sequence += 1
      pending.set(sequence, resolve)
      if (batch.push([sequence, message]) > 1) return
      setImmediate(() => {
        worker.postMessage(batch)
        batch = []
      })
    })
  return { ask, end: () => worker.terminate() }
}

function bareComlink() {
  const worker = new Worker(bareEntry)
  const { port1, port2 } = new MessageChannel()
  worker.postMessage({ comlink: port2 }, [port2])
  const remote: Remote<{ verify: typeof verify }> = wrap(endpointOf(port1))
  const end = async () => {
    remote[releaseProxy]()
    port1.close()
    await worker.terminate()
  }
  return { ask: (message: Claim) => remote.verify(message), end }
}

const bare = barePort()
const comlink = bareComlink()
const piscina = new Piscina<Claim, Verdict>({
  filename: bareEntry.href,
  name: 'verifyOnce',
  minThreads: 1,
  maxThreads: 1,
})
const inline = spawnInline(verifierActor, {})
const copying = spawnInline(verifierActor, {}, { cloneMessages: true })
const thread = await spawnThread({
  name: 'bench',
  entry: new URL('./verifier-thread.js', import.meta.url),
  definitions: [verifierActor],
})
const threaded = thread.ref(verifier)
const pool = openPool<typeof import('./verifier.js')>({
  name: 'bench',
  module: new URL('./verifier.js', import.meta.url),
  threadsMax: 1,
})
const plain = async (message: Claim) => verify(message)
let sequence = 0

for (const inflight of [64, 1]) {
  const contender = (name: string, ask: () => Promise<unknown>, target?: number): Contender => ({
    name,
    target,
    run: (ms) => saturate(ms, inflight, ask),
  })

  await publish(
    await compare({
      name: `asks on this thread, ${inflight} in flight`,
      reference: contender('async function', () => plain(claim)),
      contenders: [
        contender('inline', () => inline.ref.verify(claim)),
        contender('inline, messages copied', () => copying.ref.verify(claim)),
      ],
    }),
  )
  await publish(
    await compare({
      name: `asks of one other thread, ${inflight} in flight`,
      reference: contender('bare MessagePort, batched, structured clone', () => bare.ask(claim)),
      contenders: [
        contender('thread', () => threaded.verify(claim), inflight === 64 ? 0.6 : undefined),
        contender('pool', () => pool.run('verify', claim)),
        contender('piscina', () => piscina.run(claim)),
        contender('comlink', () => comlink.ask(claim)),
      ],
    }),
  )
}

const laned = spawnInline(
  {
    ...verifierActor,
    lane: { verify: ({ nonce }) => nonce },
  },
  {},
)
await publish(
  await compare({
    name: 'lanes, inline, 64 in flight',
    reference: {
      name: 'no lane',
      run: (ms) => saturate(ms, 64, () => inline.ref.verify(claim)),
    },
    contenders: [
      {
        name: '1000 lanes',
        run: (ms) =>
          saturate(ms, 64, () => {
            sequence += 1
            return laned.ref.verify({ ...claim, nonce: String(sequence % 1000) })
          }),
      },
      {
        name: 'one lane',
        run: (ms) => saturate(ms, 64, () => laned.ref.verify(claim)),
      },
    ],
  }),
)

await Promise.all([bare.end(), comlink.end(), piscina.destroy(), pool.close(), thread.stop()])
await Promise.all([inline.stop(), copying.stop(), laned.stop()])

/** Targets 10 to 12: the password pool at its limit, and the effect on light requests. */
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hash } from '@node-rs/argon2'
import { passwordPool, passwordsActor } from '../../actors/identity/passwords/actor.js'
import { systemClock } from '../../runtime/kernel/clock.js'
import { spawnInline } from '../../runtime/kernel/inline.js'
import { openPool } from '../../runtime/kernel/threads/pool.js'
import { systemRandom } from '../../runtime/kernel/random.js'
import { compare, pace, percentiles, publish, saturate } from '../harness.js'

const CONCURRENT = 2
const LIGHT_PER_SECOND = 400
const settings = {
  argon2_memory_kib: 65_536,
  argon2_iterations: 3,
  argon2_parallelism: 1,
  argon2_max_concurrent: CONCURRENT,
  argon2_waiting_per_tenant_max: 32,
}
const random = systemRandom(systemClock)
const pool = openPool<typeof import('../../actors/identity/passwords/compute.js')>(
  passwordPool(settings, CONCURRENT),
)
const { ref, stop } = spawnInline(passwordsActor, {
  settings,
  compute: pool,
  random,
  places: 1024,
  groups: { of: () => [] },
  breaches: null,
})
const hashOne = () => ref.hash({ password: 'a password of ordinary length' })

const server = createServer((_, response) => response.end('hello'))
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const agent = new Agent({ keepAlive: true, maxSockets: 16 })

function hello(): Promise<void> {
  return new Promise((resolve, reject) => {
    request({ port, agent, host: '127.0.0.1' }, (response) => {
      response.resume().on('end', resolve)
    })
      .on('error', reject)
      .end()
  })
}

await publish(
  await compare({
    name: 'argon2id, 64 MiB, t=3, p=1, saturated',
    ms: 3_000,
    reference: {
      name: `raw @node-rs/argon2, ${CONCURRENT} in parallel`,
      run: (ms) =>
        saturate(ms, CONCURRENT, () =>
          hash('a password of ordinary length', {
            algorithm: 2,
            memoryCost: settings.argon2_memory_kib,
            timeCost: settings.argon2_iterations,
            parallelism: 1,
            salt: random.bytes(16),
          }),
        ),
    },
    contenders: [
      {
        name: `passwords actor, during ${LIGHT_PER_SECOND} light requests/s`,
        target: 0.85,
        run: async (ms) => {
          const [hashes] = await Promise.all([
            saturate(ms, CONCURRENT * 2, hashOne),
            pace(ms, LIGHT_PER_SECOND, hello),
          ])
          return hashes
        },
      },
    ],
  }),
)

await publish(
  await compare({
    name: 'a light request every 2.5 ms, open loop',
    ms: 3_000,
    reference: { name: 'nothing else to do', run: (ms) => pace(ms, LIGHT_PER_SECOND, hello) },
    contenders: [
      {
        name: `while the pool hashes ${CONCURRENT} in parallel`,
        run: async (ms) => {
          const [, light] = await Promise.all([
            saturate(ms, CONCURRENT * 2, hashOne),
            pace(ms, LIGHT_PER_SECOND, hello),
          ])
          return light
        },
      },
    ],
  }),
)

await publish(
  await compare({
    name: 'a flood of 1,000 hashes',
    rounds: 3,
    contenders: [
      {
        name: 'refusals',
        run: async () => {
          const baseMib = process.memoryUsage.rss() / 2 ** 20
          let peakMib = baseMib
          const watch = setInterval(() => {
            peakMib = Math.max(peakMib, process.memoryUsage.rss() / 2 ** 20)
          }, 10)
          const refusedMs: number[] = []
          const flood = Array.from({ length: 1000 }, async () => {
            const startedMs = performance.now()
            const { tag } = await hashOne()
            if (tag === 'busy') refusedMs.push(performance.now() - startedMs)
          })
          await Promise.all(flood)
          clearInterval(watch)
          const figures = { ...percentiles(refusedMs), grewMib: peakMib - baseMib }
          return { operations: refusedMs.length, figures }
        },
      },
    ],
  }),
)

agent.destroy()
server.close()
await stop()
await pool.close()

import test from 'ava'
import { ActorUnavailable, defineActor } from '../../../runtime/kernel/actor.js'
import { wireActor } from '../../../runtime/kernel/wiring.js'
import { createMetrics } from '../../../runtime/kernel/metrics/metrics.js'
import { inline, pool, placement, thread } from '../../../runtime/kernel/placement.js'
import { inlineCompute } from '../../../runtime/kernel/threads/pool.js'
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import { startSystem } from '../../../runtime/kernel/system.js'
import * as arithmetic from './threads/arithmetic.js'
import { backActor, probe, probeActor } from './probe.js'

const actorWirings = (events: string[] = []) => [
  wireActor(backActor, ({ onStop }) => {
    events.push('back made')
    onStop(async () => void events.push('back closed'))
    return { onStall: () => {} }
  }),
  wireActor(probeActor, ({ ref, place, onStop }) => {
    events.push(`probe made in ${place.tag}`)
    onStop(async () => void events.push('probe closed'))
    const countLife = () => 0
    return { back: ref(backActor.address), compute: inlineCompute(arithmetic), countLife }
  }),
]

test('actors start in the order of their asks and stop in reverse', async (t) => {
  const events: string[] = []
  const system = await startSystem({
    placements: [
      placement(probeActor, pool('sums', { threadsMax: 1 }), 'auth'),
      placement(backActor, inline, 'auth', 'control'),
    ],
    planes: ['auth'],
    actorWirings: actorWirings(events),
    cloneMessages: true,
  })
  t.deepEqual(events, ['back made', 'probe made in pool'])
  t.is((await system.ref(probe).askBack({ value: 'hi' })).answer, 'hi!')
  t.deepEqual(system.readiness(), { ready: true, unready: [] })
  t.true(await system.drain(60_000))
  t.deepEqual(events.slice(2), ['probe closed', 'back closed'])
  t.false(system.readiness().ready)
})

test('actors on a thread ask actors of the main thread, and are in the metrics', async (t) => {
  const metrics = createMetrics()
  const system = await startSystem({
    placements: [
      placement(backActor, inline, 'auth'),
      placement(probeActor, thread('probing'), 'auth'),
    ],
    planes: ['auth'],
    actorWirings: actorWirings(),
    metrics,
    thread: () => ({ entry: new URL('./threads/probe-thread.js', import.meta.url) }),
  })
  t.teardown(() => system.stop())
  const answer = await system.ref(probe).askBack({ value: 'far' }, { requestId: 'r' })
  t.deepEqual(answer, { tag: 'asked', answer: 'far!', requestId: 'r' })
  t.deepEqual(
    system.stats().map(({ actor, answered }) => [actor, answered]),
    [
      ['back', 1],
      ['probe', 1],
    ],
  )
  t.regex(await metrics.exposition(), /svc_actor_answered_total\{actor="probe"\} 1\n/)
  t.true(await system.drain(60_000))
})

test('an actor that fails too often is not ready, and the others keep answering', async (t) => {
  const system = await startSystem({
    placements: [placement(backActor, inline, 'auth'), placement(probeActor, inline, 'auth')],
    planes: ['auth'],
    actorWirings: actorWirings(),
  })
  t.teardown(() => system.stop())
  for (let failure = 0; failure < 6; failure += 1) {
    const error = await t.throwsAsync(system.ref(probe).fail({ text: 'poison' }))
    t.is((error as ActorUnavailable).reason, 'failed')
  }
  t.deepEqual(system.readiness(), { ready: false, unready: ['probe'] })
  const answer = await system.ref(backActor.address).answer({ value: 'still here' })
  t.is(answer.answer, 'still here!')
  t.is((await system.ref(probe).echo({ value: 1 })).value, 1, 'also the failing one')
})

test('a table with a stranded ask or a cycle does not start', async (t) => {
  await t.throwsAsync(
    startSystem({
      placements: [
        placement(probeActor, inline, 'auth', 'control'),
        placement(backActor, inline, 'auth'),
      ],
      planes: ['auth'],
      actorWirings: actorWirings(),
    }),
    { message: /control: probe asks back/ },
  )
  type P = { x: Ask<null, { tag: 'x' }> }
  const circular = defineActor<P, Record<never, never>>({
    address: address<P>('circular'),
    asks: { circular: address<P>('circular') } as Record<never, never>,
    mailbox: { capacity: 1, inflightMax: 1 },
    create: () => ({ x: async () => ({ tag: 'x' }) }),
  })
  await t.throwsAsync(
    startSystem({
      placements: [placement(circular, inline, 'auth')],
      planes: ['auth'],
      actorWirings: [wireActor(circular, () => ({}))],
    }),
    { message: /circular -> circular/ },
  )
})

test('when an actor cannot start, earlier ones are stopped', async (t) => {
  const events: string[] = []
  const broken = wireActor(probeActor, () => {
    throw new Error('no needs today')
  })
  await t.throwsAsync(
    startSystem({
      placements: [placement(backActor, inline, 'auth'), placement(probeActor, inline, 'auth')],
      planes: ['auth'],
      actorWirings: [actorWirings(events)[0]!, broken],
    }),
    { message: 'no needs today' },
  )
  t.deepEqual(events, ['back made', 'back closed'])
})

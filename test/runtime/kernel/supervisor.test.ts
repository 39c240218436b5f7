import test from 'ava'
import { heldClock } from '../../support/held-clock.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { Supervisor, SUPERVISION_DEFAULT } from '../../../runtime/kernel/supervisor.js'

function supervise(policy: Partial<typeof SUPERVISION_DEFAULT> = {}) {
  const clock = heldClock(new Date(0))
  const changes: boolean[] = []
  const supervisor = new Supervisor({
    policy: { ...SUPERVISION_DEFAULT, restartsMax: 3, windowMs: 1000, ...policy },
    clock,
    log: silentLogger,
    onReadiness: (ready) => changes.push(ready),
  })
  return { clock, changes, supervisor }
}

test('the first restart is immediate, the next ones wait longer and longer, up to a limit', (t) => {
  const { supervisor } = supervise({ backoffMs: 10, backoffMsMax: 50 })
  const waits = Array.from({ length: 6 }, () => supervisor.failed())
  t.deepEqual(
    waits.map((verdict) => (verdict.tag === 'restart' ? verdict.afterMs : -1)),
    [0, 10, 20, 40, 50, 50],
  )
})

test('one failure too many ends readiness, and a window without failures restores it', (t) => {
  const { supervisor, clock, changes } = supervise()
  for (let failure = 0; failure < 3; failure += 1) supervisor.failed()
  t.true(supervisor.ready)
  clock.advance(500)
  supervisor.failed()
  t.false(supervisor.ready)
  clock.advance(999)
  t.false(supervisor.ready, 'the last failure is still within the window')
  clock.advance(1)
  t.true(supervisor.ready)
  t.deepEqual(changes, [false, true])
})

test('failures that are far enough apart are normal', (t) => {
  const { supervisor, clock } = supervise()
  for (let failure = 0; failure < 50; failure += 1) {
    supervisor.failed()
    clock.advance(400)
    t.true(supervisor.ready)
  }
})

test('an actor may keep its instance after failures, which still count', (t) => {
  const { supervisor } = supervise({ onFailure: 'resume' })
  for (let failure = 0; failure < 4; failure += 1) t.is(supervisor.failed().tag, 'resume')
  t.false(supervisor.ready)
})

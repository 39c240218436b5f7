/** How long a process uses what it knows of a caller, and when it closes a block. */
import test from 'ava'
import { NOTHING } from '../../../../actors/vault/egress/admission/batch.js'
import { Block, type BlockLimits } from '../../../../actors/vault/egress/admission/block.js'
import {
  type KnownCaller,
  KnownCallers,
} from '../../../../actors/vault/egress/admission/known-callers.js'

/** Revocations apply within this, also without an announcement. */
const REVOKED_WITHIN_MS = 1_000

function callerAt(callers: KnownCallers, readMs: number, block: Block | null): KnownCaller {
  const caller = {
    key: 'one',
    row: {} as never,
    authorities: [],
    readMs,
    generation: callers.generation,
    usedMs: readMs,
    block,
    isRefreshing: false,
    latest: null,
  }
  callers.remember(caller)
  return caller
}

const authority = { kind: 'grant', id: 'g' } as const
const blockAt = (nowMs: number, limits: BlockLimits | null = null, held = NOTHING) =>
  new Block({ id: 'b', credentialId: 'c', authority, callsMax: 4, nowMs, limits, held })

test('what is known expires within a second, and at once when a change is announced', (t) => {
  const callers = new KnownCallers()
  const caller = callerAt(callers, 0, blockAt(0))
  t.true(callers.isFresh(caller, 0))
  t.true(callers.isFresh(caller, 500))
  t.false(callers.isFresh(caller, REVOKED_WITHIN_MS))
  callers.forget()
  t.false(callers.isFresh(caller, 0))
  // A read that began before the change.
  callers.remember({ ...caller, readMs: 10 })
  t.false(callers.isFresh(callers.find('one')!, 10))
})

test('nothing is admitted without a block, or with one that was not renewed', (t) => {
  const callers = new KnownCallers()
  t.false(callers.isFresh(callerAt(callers, 0, null), 0))
  const block = blockAt(0)
  t.true(callers.isFresh(callerAt(callers, 50_000, block), 50_000))
  t.true(callers.isRenewalDue(block, 50_000))
  // Other processes consider this one dead after two minutes.
  t.false(callers.isFresh(callerAt(callers, 60_000, block), 60_000))
  block.renewedMs = 60_000
  t.true(callers.isFresh(callerAt(callers, 60_000, block), 60_000))
})

test('a caller is read again once, before it expires', (t) => {
  const callers = new KnownCallers()
  const caller = callerAt(callers, 0, blockAt(0))
  t.false(callers.takeRefresh(caller, 100))
  t.true(callers.takeRefresh(caller, 450))
  t.false(callers.takeRefresh(caller, 460))
})

test('a block is closed without recent calls, when all its calls are recorded', (t) => {
  const callers = new KnownCallers()
  const block = blockAt(0)
  callerAt(callers, 0, block)
  t.deepEqual(callers.takeIdle(1_000), [])
  block.unrecorded = 1
  t.deepEqual(callers.takeIdle(10_000), [])
  block.unrecorded = 0
  t.deepEqual(callers.takeIdle(10_000), [block])
  t.is(callers.size, 0)
})

test('the credential is stamped as used once a second, and again for later calls', (t) => {
  const block = blockAt(0)
  t.false(block.takeStamp(500))
  t.true(block.isStampDue)
  t.true(block.takeStamp(1_000))
  t.false(block.isStampDue)
})

test('a block with limits admits what it holds, and takes back what a call did not use', (t) => {
  const block = blockAt(0, { hasRequests: true, hasBytes: true }, { requests: 2, bytes: 1_000 })
  t.is(block.takeCall(1_001), undefined)
  t.deepEqual(block.takeCall(400), { takenBytes: 1_000 })
  t.is(block.takeCall(0), undefined, 'no byte is left')
  block.add({ requests: 0, bytes: 600 })
  t.is(block.takeBytes(601, 2_000), 0)
  t.is(block.takeBytes(100, 500), 500)
  t.deepEqual(block.takeCall(0), { takenBytes: 100 })
  block.add({ requests: 0, bytes: 100 })
  t.is(block.takeCall(0), undefined, 'no request is left')
})

test('a block with limits is refilled once at a time, and closed when something changes', (t) => {
  const callers = new KnownCallers()
  const block = blockAt(0, { hasRequests: true, hasBytes: false }, { requests: 512, bytes: 0 })
  const open = blockAt(0)
  callerAt(callers, 0, block)
  t.is(block.refillDue(0), null)
  for (let call = 0; call < 300; call += 1) block.takeCall(0)
  t.is(block.refillDue(0)?.requests, 300)
  block.isRefilling = true
  t.is(block.refillDue(0), null)
  t.false(block.isSettled)
  block.isRefilling = false
  t.deepEqual(callers.forget(), [block])
  t.true(block.isRetired)
  t.is(block.takeBytes(0, 1), 0)
  callerAt(callers, 0, open)
  t.deepEqual(callers.forget(), [], 'one without limits stays')
})

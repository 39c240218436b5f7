import test from 'ava'
import * as fc from 'fast-check'
import { Mailbox, MailboxItem } from '../../../runtime/kernel/mailbox.js'
import { runs } from '../../support/runs.js'

class Letter extends MailboxItem {
  readonly number: number

  constructor(number: number, lane: string | undefined) {
    super()
    this.number = number
    this.lane = lane
  }
}

const lane = fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined })
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('offer' as const), lane }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('finish' as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('withdraw' as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('pause' as const, 'resume' as const) }) },
)

test('any sequence of operations keeps the order of lanes and the bounds', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 6 }),
        fc.integer({ min: 1, max: 4 }),
        fc.array(step, { maxLength: 120 }),
        (capacity, inflightMax, steps) => {
          const mailbox = new Mailbox<Letter>({ capacity, inflightMax })
          const waiting: Letter[] = []
          const running: Letter[] = []
          let paused = false
          let number = 0
          const start = (letter: Letter) => {
            // In order: no message of its lane runs, and no earlier one of its lane waits.
            const rivals = [...running, ...waiting].filter(
              (other) => other.lane !== undefined && other.lane === letter.lane,
            )
            if (rivals.some((other) => running.includes(other) || other.number < letter.number)) {
              throw new Error(`${letter.number} jumped its queue`)
            }
            if (paused) throw new Error('started while paused')
            running.push(letter)
          }
          const startNext = () => {
            for (let next = mailbox.next(); next !== undefined; next = mailbox.next()) {
              waiting.splice(waiting.indexOf(next), 1)
              start(next)
            }
          }
          const take = (letters: Letter[], pick: number) =>
            letters.splice(pick % letters.length, 1)[0]!
          for (const action of steps) {
            if (action.do === 'offer') {
              const letter = new Letter((number += 1), action.lane)
              const verdict = mailbox.offer(letter)
              if (verdict === 'start') start(letter)
              else if (verdict === 'wait') waiting.push(letter)
              else if (waiting.length < capacity) throw new Error('refused with room left')
            } else if (action.do === 'finish' && running.length > 0) {
              mailbox.finish(take(running, action.pick))
              startNext()
            } else if (action.do === 'withdraw' && waiting.length > 0) {
              if (!mailbox.withdraw(take(waiting, action.pick))) throw new Error('was not waiting')
              startNext()
            } else if (action.do === 'pause' || action.do === 'resume') {
              paused = action.do === 'pause'
              if (paused) mailbox.pause()
              else mailbox.resume()
              startNext()
            }
            if (mailbox.waiting !== waiting.length || mailbox.running !== running.length) {
              throw new Error('miscounted')
            }
            if (waiting.length > capacity || running.length > inflightMax)
              throw new Error('overfull')
            if (!paused && running.length === 0 && waiting.length > 0) throw new Error('stuck')
          }
          mailbox.resume()
          paused = false
          startNext()
          while (running.length > 0) {
            mailbox.finish(running.pop()!)
            startNext()
          }
          if (waiting.length > 0 || mailbox.lanes > 0) throw new Error('something is left')
        },
      ),
      { numRuns: runs(2000) },
    ),
  )
})

test('a busy lane does not starve the others', (t) => {
  const mailbox = new Mailbox<Letter>({ capacity: 100, inflightMax: 1 })
  const offer = (number: number, lane: string) => mailbox.offer(new Letter(number, lane))
  const first = new Letter(0, 'busy')
  t.is(mailbox.offer(first), 'start')
  for (let number = 1; number < 10; number += 1) offer(number, 'busy')
  offer(10, 'quiet')
  mailbox.finish(first)
  const started: string[] = []
  for (let count = 0; count < 2; count += 1) {
    const next = mailbox.next()!
    started.push(next.lane!)
    mailbox.finish(next)
  }
  t.true(started.includes('quiet'))
})

class SharedLetter extends MailboxItem {
  constructor(share: string, lane?: string) {
    super()
    this.share = share
    this.lane = lane
  }
}

test('shares that wait take turns for free places', (t) => {
  const mailbox = new Mailbox<SharedLetter>({ capacity: 10, inflightMax: 1 })
  const running = new SharedLetter('busy')
  t.is(mailbox.offer(running), 'start')
  for (const share of ['busy', 'busy', 'busy', 'quiet']) {
    t.is(mailbox.offer(new SharedLetter(share)), 'wait')
  }
  const served: string[] = []
  let done: SharedLetter = running
  for (let count = 0; count < 4; count += 1) {
    mailbox.finish(done)
    done = mailbox.next()!
    served.push(done.share)
  }
  t.deepEqual(served, ['busy', 'quiet', 'busy', 'busy'])
})

test('a full mailbox accepts a message of a share with fewer waiting messages', (t) => {
  const mailbox = new Mailbox<SharedLetter>({ capacity: 3, inflightMax: 1 })
  const running = new SharedLetter('busy', 'one lane')
  t.is(mailbox.offer(running), 'start')
  const behind = [0, 1, 2].map(() => new SharedLetter('busy', 'one lane'))
  for (const letter of behind) t.is(mailbox.offer(letter), 'wait')
  t.is(mailbox.offer(new SharedLetter('busy')), 'full')
  const quiet = new SharedLetter('quiet')
  t.deepEqual(mailbox.offer(quiet), { tag: 'displaced', item: behind[2]! })
  t.is(mailbox.waiting, 3)
  mailbox.finish(running)
  // Both shares had a ready message. The lane's next message became ready after the other one.
  t.is(mailbox.next(), quiet)
  mailbox.finish(quiet)
  t.is(mailbox.next(), behind[0])
  mailbox.finish(behind[0]!)
  t.is(mailbox.next(), behind[1])
  mailbox.finish(behind[1]!)
  t.is(mailbox.next(), undefined)
  t.is(mailbox.lanes, 0)
})

test('a share with long messages leaves places to the others', (t) => {
  const mailbox = new Mailbox<SharedLetter>({ capacity: 10, inflightMax: 4 })
  const running = Array.from({ length: 3 }, () => new SharedLetter('busy'))
  for (const letter of running) t.is(mailbox.offer(letter), 'start')
  const waits = new SharedLetter('busy')
  t.is(mailbox.offer(waits), 'wait')
  t.is(mailbox.next(), undefined)
  const quiet = new SharedLetter('quiet')
  t.is(mailbox.offer(quiet), 'start', 'past what waits for a place in its share')
  t.is(mailbox.offer(new SharedLetter('')), 'wait', 'all places are taken')
  mailbox.finish(quiet)
  t.is(mailbox.next()?.share, '')
  t.is(mailbox.next(), undefined)
  mailbox.finish(running[0]!)
  t.is(mailbox.next(), waits)
})

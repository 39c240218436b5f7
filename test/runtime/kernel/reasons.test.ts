import { once } from 'node:events'
import { connect } from 'node:net'
import test from 'ava'
import { reasonOf } from '../../../runtime/kernel/text/reasons.js'
import { errorText } from '../../../runtime/process/error-text.js'

test('an attempt at several addresses reports the reasons', async (t) => {
  const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }))
  const socket = connect({
    host: 'svc.example',
    // A port without a listener.
    port: 1,
    autoSelectFamily: true,
    lookup: (_host, _options, done) => done(null, addresses),
  })
  const error: unknown = await once(socket, 'connect').catch((failure: unknown) => failure)
  t.true(error instanceof AggregateError)
  t.is((error as Error).message, '')
  t.regex(reasonOf(error), /ECONNREFUSED 127\.0\.0\.\d:1/)
})

test('an error with a message keeps it', (t) => {
  t.is(reasonOf(new Error('in words')), 'in words')
  t.is(reasonOf(new AggregateError([new Error('a part')], 'in words')), 'in words')
  t.is(reasonOf('a text'), 'a text')
})

test('an operator sees what failed and why', (t) => {
  const parts = new AggregateError([new Error('refused by one'), new Error('refused by two')])
  t.is(
    errorText(new Error('no database', { cause: parts })),
    'no database: refused by one, refused by two',
  )
  t.is(errorText(new Error('no database', { cause: new Error('refused') })), 'no database: refused')
  t.is(errorText(new Error('no database', { cause: 'of no class' })), 'no database')
  // The error of the attempt has no message: it was printed as an empty line.
  t.is(errorText(parts), 'refused by one')
  t.is(errorText('a text'), 'a text')
})

import test from 'ava'
import { createLogger } from '../../../runtime/kernel/log.js'

function logged(write: (log: ReturnType<typeof createLogger>) => void): Record<string, never> {
  let line = ''
  write(createLogger({ level: 'info', destination: { write: (text) => void (line += text) } }))
  return JSON.parse(line)
}

test('an error is logged with type, message, code and causes, and no other members', (t) => {
  const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
  const error = Object.assign(new TypeError('lost', { cause }), {
    client: { password: 'canary' },
    parameters: ['canary'],
  })
  const line = logged((log) => log.error({ err: error }, 'failed'))
  t.like(line, {
    err: {
      type: 'TypeError',
      message: 'lost',
      cause: { type: 'Error', message: 'refused', error_code: 'ECONNREFUSED' },
    },
  })
  t.notRegex(JSON.stringify(line), /canary/)
})

test('a cyclic chain of causes ends', (t) => {
  const error = new Error('round')
  error.cause = error
  t.regex(JSON.stringify(logged((log) => log.error({ err: error }))), /round/)
})

test('members with secrets are removed down to the third level', (t) => {
  const secret = { access_token: 'canary', deeper: { client_secret: 'canary' } }
  const line = logged((log) => log.info({ password: 'canary', body: secret }))
  t.notRegex(JSON.stringify(line), /canary/)
})

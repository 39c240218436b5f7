import test from 'ava'
import { terminalLog } from '../../../runtime/cli/terminal-log.js'
import { createLogger } from '../../../runtime/kernel/log.js'

function terminal() {
  const lines: string[] = []
  const output = terminalLog({ write: (text) => lines.push(text) })
  return { lines, output, log: createLogger({ level: 'info', destination: output }) }
}

test('a terminal shows level, message and members in one coloured line', (t) => {
  const { lines, log } = terminal()
  log.info({ port: 8080 }, 'listening')
  t.is(lines.length, 1)
  // oxlint-disable-next-line no-control-regex
  t.regex(lines[0]!, /^\[\d\d:\d\d:\d\d\] \u001b\[32mINFO\u001b\[39m: .*listening.*8080.*\n$/)
  t.notRegex(lines[0]!, /"level"|svc/)
})

test('an error shows its stack', (t) => {
  const { lines, log } = terminal()
  log.error({ err: new TypeError('lost') }, 'failed')
  t.regex(lines.join(''), /failed/)
  t.regex(lines.join(''), /TypeError: lost\n\s+at /)
})

test('secrets are cut out, and control characters are shown as escapes', (t) => {
  const { lines, log } = terminal()
  log.warn(
    { password: 'canary', name: 'x\u001b[2J\u009b2Jy' },
    'over\rwritten \u001b]0;title\u0007 \\u001b',
  )
  const text = lines.join('')
  t.notRegex(text, /canary/)
  t.true(text.includes('over\\rwritten \\u001b]0;title\\u0007 \\u001b'), JSON.stringify(text))
  // oxlint-disable-next-line no-control-regex
  t.notRegex(text.replaceAll(/\u001b\[\d+m/g, ''), /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
})

test('in production a terminal gets JSON lines', (t) => {
  const { lines, output, log } = terminal()
  output.keepJson()
  log.info('listening')
  t.like(JSON.parse(lines[0]!), { msg: 'listening', service: 'svc' })
})

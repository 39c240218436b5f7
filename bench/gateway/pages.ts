/**
 * Processor time to render a hosted page in process: the sign-in, consent and account pages in English, and the account
 * page in German.
 *
 *     node dist/bench/gateway/pages.js
 */
import { accountPage } from '../../gateway/pages/identity/account.js'
import { loginPage } from '../../gateway/pages/identity/login.js'
import { consentPage } from '../../gateway/pages/oauth/authorize.js'
import { NO_BROWSER } from '../../gateway/request/browser.js'
import { NO_CONTEXT, type ReplyContext } from '../../gateway/response/replies.js'
import { machine, median, publishTable } from '../harness.js'
import { accountSeen, consentAsked, signInShown } from './page-outcomes.js'

const TARGET_MS = 2
const [WARM_UPS, ROUNDS, RENDERS_PER_ROUND] = [500, 200, 20]

const context = (languages: string): ReplyContext => ({
  ...NO_CONTEXT,
  browser: {
    ...NO_BROWSER,
    languages: { ...NO_BROWSER.languages, header: languages },
    csrfToken: 'k3Jx0G1u1zq8hYl4oYcW7Qk3Jx0G1u1zq8hYl4oYcW7',
  },
})
const [english, german] = [context('en'), context('de')]

const pages: Readonly<Record<string, () => string>> = {
  'sign-in': () => loginPage(signInShown, english).html,
  consent: () => consentPage(consentAsked, '/oauth/authorize/handle', english),
  account: () => accountPage(accountSeen, english).html,
  'account, German': () => accountPage(accountSeen, german).html,
}

/** Milliseconds of processor time for one render: the median of the rounds. */
function cpuMs(render: () => string): number {
  for (let index = 0; index < WARM_UPS; index += 1) render()
  const rounds = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage()
    for (let index = 0; index < RENDERS_PER_ROUND; index += 1) render()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000 / RENDERS_PER_ROUND
  })
  return median(rounds)
}

const rows = Object.entries(pages).map(([name, render]) => {
  const ms = cpuMs(render)
  return { name, ms, bytes: Buffer.byteLength(render()), reached: ms <= TARGET_MS }
})
const lines = rows.map(
  ({ name, ms, bytes, reached }) =>
    `| ${name} | ${ms.toFixed(2)} | ${bytes.toLocaleString('en-US')} | ${TARGET_MS} ${reached ? 'reached' : 'missed'} |`,
)
const table = `
## Rendering a hosted page

${machine()}

|  | CPU ms, median | bytes of HTML | target |
| --- | --- | --- | --- |
${lines.join('\n')}
`
await publishTable(table, { name: 'Rendering a hosted page', machine: machine(), rows })
if (rows.some(({ reached }) => !reached)) process.exitCode = 1

/** Runs the commands of docs/guides/commerce/payments.md in their order. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { docsPage, testCommands } from '../../support/pages/docs-page.js'
import { sharedService } from '../../support/service.js'
import { tenantAgent } from '../../support/identity/tenant-agent.js'
import { trustOfPrograms } from '../../support/service/trust.js'

testCommands(
  'the commands of docs/guides/commerce/payments.md sell, refund and renew',
  async (t) => {
    t.timeout(120_000)
    const running = await sharedService('commerce', { transport: 'plain_http' })
    const folder = mkdtempSync(join(tmpdir(), 'svc-page-'))
    t.teardown(async () => {
      rmSync(folder, { recursive: true })
      await running.end()
    })
    const { token } = await tenantAgent(running.baseUrl)
    const script = docsPage(t, 'guides/commerce/payments').blocks('sh').join('\n')
    const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        ...trustOfPrograms(),
        BASE: running.baseUrl,
        TOKEN: token,
      },
    })
    t.teardown(() => child.kill('SIGKILL'))
    let [output, faults] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (faults += text))
    const code = await new Promise((resolve) => child.on('close', resolve))
    t.is(code, 0, `${output}\n${faults}`)
    const [location = '', ...lines] = output.trim().split('\n')
    t.regex(location, /^http:\/\/localhost:3000\/thanks\?charge_id=[0-9a-f-]{36}$/)
    t.deepEqual(lines, [
      'succeeded',
      '["succeeded",3998,{"order":"A-17"}]',
      '["refunded",500]',
      '["active",1]',
      'renewed',
    ])
  },
)

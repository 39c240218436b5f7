/**
 * The authorization server scenarios of the official MCP conformance suite (@modelcontextprotocol/conformance), with
 * a user who signs in at the URL that the suite prints.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import test from 'ava'
import { notThroughHttp2 } from '../../../support/fleet/through.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { OTHER_NODE_MISSING, otherNode } from '../../../support/other-node.js'
import { authorized, pathOf, relyingParty } from '../../../support/oauth/relying-party.js'
import { checkFolder, SUITE } from '../../../support/operations/mcp-suite.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { freePort, sharedService } from '../../../support/service.js'
import { trustOfPrograms } from '../../../support/service/trust.js'

const title = 'MCP authorization server scenarios'
if (OTHER_NODE_MISSING !== null) {
  test.skip(`${title} (skipped: ${OTHER_NODE_MISSING})`, () => undefined)
} else {
  test(title, async (t) => {
    t.timeout(240_000)
    notThroughHttp2()
    const node = await otherNode(22)
    const running = await sharedService('plain', { transport: 'plain_http' })
    const out = checkFolder()
    t.teardown(async () => {
      out.remove()
      await running.end()
    })
    const person = await bootstrapped(running)
    const port = await freePort()
    // The suite authenticates with `none` wherever the metadata lists it, so its client is a public one.
    const { clientId, audience } = await relyingParty(running, person, {
      clientType: 'public',
      tokenEndpointAuthMethod: 'none',
      redirectUris: [`http://127.0.0.1:${port}/callback`],
    })
    const options = ['--url', running.issuer, '--client-id', clientId, '--resource', audience]
    const words = [SUITE, 'authorization', ...options, '-p', String(port), '-o', out.path]
    const child = spawn(node, words, { env: { ...process.env, ...trustOfPrograms() } })
    let printed = ''
    child.stderr.on('data', (chunk: Buffer) => (printed += String(chunk)))
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
    t.teardown(() => child.kill('SIGKILL'))
    for await (const line of createInterface(child.stdout)) {
      printed += `${line}\n`
      if (!line.startsWith(`${running.issuer}/`) || !line.includes('code_challenge=')) continue
      const page = await authorized(openBrowser(running), person, pathOf(new URL(line)))
      t.is(page.status, 302, page.html)
      t.is((await fetch(page.location!)).status, 200, 'the callback server of the suite')
    }
    t.is(await ended, 0, printed)
    const checks = [...out.checks().values()].flat()
    const statusOf = (id: string) => checks.find((check) => check.id === id)?.status
    t.is(statusOf('authorization-code-grant'), 'SUCCESS', printed)
    t.is(statusOf('authorization-server-metadata'), 'SUCCESS', printed)
    t.deepEqual(
      checks.filter(({ status }) => status === 'FAILURE'),
      [],
    )
  })
}

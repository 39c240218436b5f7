/** Forms of credentials whose secret is a document. */
import { generateKeyPairSync } from 'node:crypto'
import test from 'ava'
import { consoleOwner, openConsole } from '../../../support/identity/console.js'
import { sharedApi } from '../../../support/service.js'

const { api } = await sharedApi('enterprise')

test('OAuth accounts and GitHub Apps are created in fields, without JSON', async (t) => {
  const { browser } = await consoleOwner(api)
  const act = async (path: string, fields: Readonly<Record<string, string>>) =>
    browser.submit(await openConsole(browser, path), fields, path)
  const page = '/console/vault-credentials/do/githubapp'
  const { html } = await openConsole(browser, page)
  t.regex(html, /<textarea id="f-secret.private_key"/)
  t.regex(html, /<input id="f-secret.installation_id"/)
  t.notRegex(html, /name="(?:auth_scheme|credential_type|secret|token_of)"/)
  t.regex(html, /&quot;auth_scheme&quot;: ?&quot;github_app&quot;|github_app/)
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const app = {
    provider: 'github',
    label: 'Crane app',
    allowed_hosts: 'api.github.com',
    'secret.app_id': '12',
    'secret.installation_id': '34',
    'secret.private_key': String(privateKey.export({ type: 'pkcs1', format: 'pem' })),
    'secret.repositories': 'cranes\nships',
    'secret.permissions.0.key': 'contents',
    'secret.permissions.0.value': 'read',
  }
  const created = await act(page, app)
  t.is(created.status, 303, created.html)
  const shown = await openConsole(browser, created.location!.replace('?done=1', ''))
  t.regex(shown.html, /github_app/)
  t.regex(shown.html, /data-status="active"/)
  t.notRegex(shown.html, /PRIVATE KEY/)

  const account = {
    provider: 'harbour',
    label: 'Crane account',
    allowed_hosts: 'id.harbour.example\napi.harbour.example',
    'secret.token_url': 'https://elsewhere.example/token',
    'secret.client_id': 'crane',
    'secret.refresh_token': 'crane-refresh-token',
    'secret.auth_method': 'none',
  }
  const away = await act('/console/vault-credentials/do/oauthaccount', account)
  t.is(away.status, 400)
  t.regex(away.html, /id="f-secret.token_url-fault"[^]*allowed_hosts/)
  t.notRegex(away.html, /crane-refresh-token/)
  const token_url = 'https://id.harbour.example/token'
  const there = await act('/console/vault-credentials/do/oauthaccount', {
    ...account,
    'secret.token_url': token_url,
  })
  t.is(there.status, 303, there.html)
})

test('keys that sign requests are added and replaced in fields, without JSON', async (t) => {
  const { browser } = await consoleOwner(api)
  const list = '/console/vault-credentials'
  const act = async (path: string, fields: Readonly<Record<string, string>>) =>
    browser.submit(await openConsole(browser, path), fields, path)
  const add = async (action: string, fields: Readonly<Record<string, string>>) => {
    const common = { label: action, provider: 'harbour', allowed_hosts: 'api.harbour.example' }
    const created = await act(`${list}/do/${action}`, { ...common, ...fields })
    t.is(created.status, 303, created.html)
    return created.location!.replace('?done=1', '')
  }
  const plain = await openConsole(browser, `${list}/do/create`)
  t.notRegex(plain.html, /JSON|aws_sigv4|hmac|<option value="oauth2"/)

  const aws = await openConsole(browser, `${list}/do/awskeys`)
  t.regex(aws.html, /<input id="f-secret.secret_access_key"[^>]*type="password"/)
  const keys = { 'secret.access_key_id': 'AKIACRANE', 'secret.secret_access_key': 'crane-key-1' }
  const item = await add('awskeys', keys)
  const rotated = await act(`${item}/do/rotate`, { ...keys, 'secret.role_arn': 'crane' })
  // A person replaces a secret after a fresh second factor.
  t.true([303, 400].includes(rotated.status), rotated.html)
  t.notRegex((await openConsole(browser, `${item}/do/rotate`)).html, /name="secret"/)

  const hmac = await openConsole(browser, `${list}/do/hmackey`)
  t.regex(hmac.html, /<option value="github_webhook">GitHub webhook</)
  t.regex(hmac.html, /<textarea id="f-secret.string"/)
  t.regex(hmac.html, /<input id="f-secret.key"[^>]*type="password"/)
  await add('hmackey', { 'secret.preset': 'github_webhook', 'secret.key': 'crane-hmac-key' })
  await add('hmackey', {
    'secret.key': 'crane-hmac-key',
    'secret.string': '{METHOD}\n{path}\n',
    'secret.set.0.header': 'x-signature',
    'secret.set.0.value': '{signature}',
  })
  const refused = await act(`${list}/do/hmackey`, {
    label: 'Crane',
    provider: 'harbour',
    allowed_hosts: 'api.harbour.example',
    'secret.preset': 'binance',
    'secret.key': 'crane-hmac-key',
  })
  t.is(refused.status, 400)
  t.regex(refused.html, /id="f-secret.key_id-fault"/)
  t.notRegex(refused.html, /crane-hmac-key/)

  const signed = await openConsole(browser, `${list}/do/agentsignature`)
  t.notRegex(signed.html, /name="secret/)
  const agents = await openConsole(browser, await add('agentsignature', {}))
  t.notRegex(agents.html, /do\/rotate/)
})

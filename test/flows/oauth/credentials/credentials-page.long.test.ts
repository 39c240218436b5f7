/** The code of docs/guides/oauth/verifiable-credentials.md, run unchanged. */
import test from 'ava'
import { docsPage } from '../../../support/pages/docs-page.js'
import { sharedApi } from '../../../support/service.js'

const { api, running } = await sharedApi('plain', { transport: 'plain_http' })

test('the commands of the page offer, issue and read the status', async (t) => {
  const { token, body } = await api.workspace()
  const { rows } = await api.list('/api/v1/tenant-users', token)
  const page = docsPage(t, 'guides/oauth/verifiable-credentials')
  const environment = {
    BASE: running.baseUrl,
    TOKEN: token,
    TENANT_SLUG: String(body['tenant_slug']),
    USER_ID: String(rows[0]!['id']),
  }
  t.is((await page.run('sh', 0, environment)).trim(), 'true')
  const [status, link] = (await page.run('sh', 1, environment)).trim().split('\n')
  t.is(status, 'offered')
  t.regex(String(link), /^openid-credential-offer:\/\/\?credential_offer_uri=http/)
  const printed = (await page.run('js', 0, environment)).trim().split('\n')
  t.deepEqual(printed, ['sub', 'tenant', 'roles', 'org', 'true OKP'])
  t.deepEqual((await page.run('sh', 2, environment)).trim().split('\n'), ['3600', '1'])
})

/** The logo and the favicon of a tenant, in an object store with the API of S3. */
import test from 'ava'
import sharp from 'sharp'
import { signed } from '../../../actors/identity/tenant-assets/signature-v4.js'
import { apiOf, type Json } from '../../support/api.js'
import { openObjectStore } from '../../support/identity/object-store.js'
import { testService } from '../../support/service.js'
import { SERVING_PROCESSES } from '../../support/fleet/through.js'
import { until } from '../../support/service/watch.js'

const account = {
  accessKeyId: 'AKIDTEST',
  secretAccessKey: 'a/secret+of=tests',
  region: 'eu-test-1',
}
const store = await openObjectStore(account)
const METRICS_TOKEN = 'metrics-token-of-this-test-0123456789'
const environment = {
  SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
  SVC_TENANT_ASSETS__ENABLED: 'true',
  SVC_TENANT_ASSETS__S3_ENDPOINT: store.url,
  SVC_TENANT_ASSETS__PUBLIC_BASE_URL: 'https://assets.example.com/svc',
  SVC_TENANT_ASSETS__BUCKET: 'svc-assets',
  SVC_TENANT_ASSETS__REGION: account.region,
  SVC_TENANT_ASSETS__ACCESS_KEY_ID: account.accessKeyId,
  SVC_TENANT_ASSETS__SECRET_ACCESS_KEY: account.secretAccessKey,
}
const log: string[] = []
const logged = (text: string) => until(text, () => log.some((line) => line.includes(text)))
const running = await testService({ environment, onLog: (line) => log.push(line) })
const api = apiOf(running)
test.after.always(() => store.close())

const PATH = '/api/v1/tenant/branding/assets'

const png = (color: string) =>
  sharp({ create: { width: 40, height: 40, channels: 3, background: color } })
    .png()
    .toBuffer()

async function put(token: string, body: Uint8Array, at = api) {
  const answer = await fetch(`${at.at.baseUrl}${PATH}/logo`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'image/png' },
    body: new Uint8Array(body),
  })
  const { status, headers } = answer
  return { status, headers, body: (await answer.json()) as Json }
}

test.serial('an image is stored under its hash and shown from the public address', async (t) => {
  const { token, tenantId, body: made } = await api.workspace()
  const { status, body } = await put(token, await png('#ff0000'))
  t.is(status, 200, JSON.stringify(body))
  const url = String(body['url'])
  const key = url.slice('https://assets.example.com/svc/'.length)
  t.regex(key, new RegExp(`^${tenantId}/[0-9a-f]{64}\\.webp$`))
  const stored = store.objects.get(`/svc-assets/${key}`)
  t.is(stored?.contentType, 'image/webp')
  t.is(stored?.cacheControl, 'public, max-age=31536000, immutable')
  t.is(stored?.bytes.length, Number(body['size_bytes']))
  const slug = String(made['tenant_slug'])
  const page = await fetch(`${api.at.baseUrl}/auth/login?tenant_slug=${slug}`)
  t.true((await page.text()).includes(`<img src="${url}" alt="" class="logo">`))
  const policy = String(page.headers.get('content-security-policy'))
  t.regex(policy, /img-src 'self' data: https:\/\/assets\.example\.com;/)
  const file = await fetch(`${api.at.baseUrl}/assets/${key}`)
  t.is(file.status, 404, 'the service does not serve the files of the object store')
  // Behind a proxy another process may have done the upload.
  if (SERVING_PROCESSES > 1) return
  const metrics = await fetch(`${api.at.baseUrl}/metrics`, {
    headers: { authorization: `Bearer ${METRICS_TOKEN}` },
  })
  const text = await metrics.text()
  t.regex(text, /svc_object_store_calls_total\{operation="put",outcome="ok"\} [1-9]/)
  t.regex(text, /svc_tenant_asset_uploads_total\{outcome="shown"\} [1-9]/)
})

test.serial('while the object store fails, uploads fail and nothing changes', async (t) => {
  const { token } = await api.workspace()
  const first = await put(token, await png('#00ff00'))
  store.failing = 500
  t.teardown(() => (store.failing = null))
  const refused = await put(token, await png('#0000ff'))
  t.is(refused.status, 503)
  t.truthy(refused.headers.get('retry-after'))
  store.failing = null
  t.is((await api.get(`${PATH}/logo`, token)).body['url'], first.body['url'])
  t.is((await put(token, await png('#0000ff'))).status, 200)
  await t.notThrowsAsync(logged('status 500 InternalError'))
})

test.serial('a wrong secret is a fault of the deployment, and it is not logged', async (t) => {
  store.account = { ...account, secretAccessKey: "another secret than the service's" }
  t.teardown(() => (store.account = account))
  const { token } = await api.workspace()
  t.is((await put(token, await png('#00ff00'))).status, 503)
  await t.notThrowsAsync(logged('status 403 SignatureDoesNotMatch'))
  t.false(log.some((line) => line.includes(account.secretAccessKey)))
})

// Amazon S3 API Reference, Signature Calculations for the Authorization Header, "Example: PUT Object".
test('the signature of the published example', (t) => {
  const headers = signed(
    {
      method: 'PUT',
      path: '/test%24file.text',
      host: 'examplebucket.s3.amazonaws.com',
      headers: {
        date: 'Fri, 24 May 2013 00:00:00 GMT',
        'x-amz-storage-class': 'REDUCED_REDUNDANCY',
      },
      body: Buffer.from('Welcome to Amazon S3.'),
    },
    {
      accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
      secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
      region: 'us-east-1',
    },
    new Date('2013-05-24T00:00:00Z'),
  )
  t.is(
    headers['x-amz-content-sha256'],
    '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
  )
  t.regex(
    String(headers['authorization']),
    /Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd$/,
  )
})

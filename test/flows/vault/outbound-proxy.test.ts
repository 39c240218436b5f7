/** `[proxy]`: calls to the outside go through an HTTP proxy, after the same checks as without one (contract/addresses). */
import test from 'ava'
import { UPSTREAM_NAME } from '../../support/vault/egress.js'
import { connectProxy, echoed, houseBehind } from '../../support/vault/outbound-proxy.js'

/** A domain that is reached without the proxy, and a name that is not of it. */
const NO_PROXY = 'other.upstream.example'
const NAME_BEHIND = 'private.upstream.example'

test('a proxy gets the account and the name, and its refusal is a 502', async (t) => {
  const proxy = await connectProxy(t)
  const house = await houseBehind(t, proxy.url, {
    SVC_PROXY__CONNECT_TO: 'name',
    SVC_PROXY__USERNAME: 'svc',
    SVC_PROXY__PASSWORD: 'of the proxy',
    SVC_PROXY__NO_PROXY: NO_PROXY,
  })
  const { code, text } = await echoed(house)
  t.is(code, 200, text)
  const [request] = proxy.asked
  const { port } = new URL(house.upstream.origin)
  t.is(request?.url, `${UPSTREAM_NAME}:${port}`)
  const basic = Buffer.from('svc:of the proxy').toString('base64')
  t.is(request?.headers['proxy-authorization'], `Basic ${basic}`)
  t.is(house.upstream.requests.at(-1)?.headers['proxy-authorization'], undefined)

  // A host of no_proxy is reached without the proxy: the certificate of the upstream is for the other name.
  t.regex((await echoed(house, `direct.${NO_PROXY}`)).status, /error=tls_certificate_error/)
  t.is(proxy.asked.length, 1)

  proxy.refuse(407)
  const refused = await echoed(house, NAME_BEHIND)
  t.is(refused.code, 502, refused.text)
  t.regex(refused.status, /error=connection_refused/)
  t.is(proxy.asked.length, 2)
  proxy.end()
  const away = await echoed(house, NAME_BEHIND)
  t.is(away.code, 502, away.text)
  t.regex(away.status, /error=connection_refused/)
})

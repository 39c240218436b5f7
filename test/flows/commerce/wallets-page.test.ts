/** Runs the commands and the code of docs/guides/commerce/wallets.md. */
import test from 'ava'
import { apiOf } from '../../support/api.js'
import { NETWORK } from '../../support/commerce/chain.js'
import { walletAgent, WALLETS } from '../../support/commerce/wallet.js'
import { openShop } from '../../support/commerce/x402-shop.js'
import { docsPage } from '../../support/pages/docs-page.js'

const shop = await openShop({ environment: WALLETS, transport: 'plain_http' })
const api = apiOf(shop.running)
test.after.always(async () => {
  await api.close()
  await shop.close()
})

test('the commands create and freeze a wallet, and the code pays with it', async (t) => {
  const page = docsPage(t, 'guides/commerce/wallets')
  const workspace = await api.workspace()
  const { agentId, token } = await walletAgent(api, workspace, null)
  const link = await shop.link()
  const { baseUrl } = shop.running
  const printed = await page.runCommands({
    BASE: baseUrl,
    TOKEN: workspace.token,
    AGENT: agentId,
    PAYEE: link.payTo,
    NETWORK,
    ASSET: shop.chain.token,
  })
  const [address = '', ...statuses] = printed.trim().split('\n')
  t.deepEqual(statuses, ['frozen', 'active'])
  await shop.chain.mint(address, 20_000_000n)
  const SELLER = `${baseUrl}${link.url}?buyer_country=US&buyer_region=CA`
  const output = await page.run('js', 0, { BASE: baseUrl, AGENT_TOKEN: token, SELLER })
  t.regex(output, /^200 /)
  t.is((await shop.chain.transfersTo(link.payTo)).length, 1)
})

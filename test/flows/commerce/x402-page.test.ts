/** Runs the commands and the code of docs/guides/commerce/x402.md and wallets.md. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import test from 'ava'
import { privateKeyToAccount } from 'viem/accounts'
import { apiOf } from '../../support/api.js'
import { NETWORK } from '../../support/commerce/chain.js'
import { walletAgent } from '../../support/commerce/wallet.js'
import { docsPage } from '../../support/pages/docs-page.js'
import { decode, openShop, PRICE_ATOMIC } from '../../support/commerce/x402-shop.js'

const PAGE = readFileSync(
  new URL('../../../../docs/guides/commerce/x402.md', import.meta.url),
  'utf8',
)
const MODULES = fileURLToPath(new URL('../../../../node_modules', import.meta.url))
const run = promisify(execFile)

function block(name: string): string {
  const found = new RegExp(`<!-- run: ${name} -->\n\`\`\`\\w+\n([^]*?)\`\`\``).exec(PAGE)
  if (found === null) throw new Error(`the page has no block ${name}`)
  return found[1]!
}

const shop = await openShop({ profile: 'wallets', transport: 'plain_http' })
const api = apiOf(shop.running)
test.after.always(() => shop.close())

test('the command prints the price', async (t) => {
  const link = await shop.link()
  const environment = { ...process.env, LINK: shop.running.baseUrl + link.url }
  const { stdout } = await run('sh', ['-c', block('price')], { env: environment })
  t.regex(stdout, /^HTTP\/1\.1 402 /)
  const field = /payment-required: (\S+)/i.exec(stdout)?.[1]
  t.like((decode(field ?? null)['accepts'] as object[])[0], { amount: String(PRICE_ATOMIC) })
})

test('the code pays', async (t) => {
  const link = await shop.link()
  const key = `0x${'5a'.repeat(32)}` as const
  await shop.chain.mint(privateKeyToAccount(key).address, PRICE_ATOMIC)
  const folder = await mkdtemp(join(tmpdir(), 'x402-'))
  t.teardown(() => rm(folder, { recursive: true }))
  await symlink(MODULES, join(folder, 'node_modules'))
  await writeFile(join(folder, 'pay.mjs'), block('pay'))
  const LINK = shop.running.baseUrl + link.url
  const env = { ...process.env, KEY: key, LINK, ASSET: shop.chain.token }
  const { stdout } = await run(process.execPath, ['pay.mjs'], { cwd: folder, env })
  t.regex(stdout, /^200 /)
  t.like(JSON.parse(stdout.slice(4)), { status: 'succeeded', amount_minor: 1_999 })
  t.is((await shop.chain.transfersTo(link.payTo)).length, 1)
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

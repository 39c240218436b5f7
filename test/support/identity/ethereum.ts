/** An Ethereum wallet for tests: an externally owned account, and how it signs in. */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { Page, TestBrowser } from '../pages/browser.js'

export type EthereumWallet = {
  /** With its checksum (EIP-55). */
  readonly address: string
  /** EIP-191, as `personal_sign`. */
  sign(message: string): Promise<string>
}

export function ethereumWallet(): EthereumWallet {
  const account = privateKeyToAccount(generatePrivateKey())
  return { address: account.address, sign: (message) => account.signMessage({ message }) }
}

/** The form of a page that a wallet fills in. */
function formOf(page: Page) {
  const form = page.forms.find(({ fields }) => 'signature' in fields)
  if (form === undefined) throw new Error(`no form for a wallet: ${page.status} ${page.html}`)
  return form
}

export type Composed = {
  readonly message?: string
  readonly refused?: string
  readonly location?: string
}

/** Requests the message to sign, as the script of the page does. */
export async function messageFor(
  browser: TestBrowser,
  page: Page,
  account: string,
  chainId = '0x1',
): Promise<Composed> {
  const { action, fields } = formOf(page)
  const answer = await browser.post(
    `${action}/message`,
    { ...fields, account, chain_id: chainId },
    { accept: 'application/json' },
  )
  return JSON.parse(answer.html) as Composed
}

/** Signs the message of the page and submits it. */
export async function useWallet(
  browser: TestBrowser,
  page: Page,
  wallet: EthereumWallet,
): Promise<Page> {
  const { message } = await messageFor(browser, page, wallet.address)
  if (message === undefined) throw new Error('no message')
  return browser.submit(
    page,
    { message, signature: await wallet.sign(message) },
    formOf(page).action,
  )
}

/** Links the wallet on the account page. */
export async function linkWallet(browser: TestBrowser, wallet: EthereumWallet): Promise<Page> {
  return useWallet(browser, await browser.get('/auth/account/wallets/new'), wallet)
}

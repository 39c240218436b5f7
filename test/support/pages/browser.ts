/** The headless browser for tests. */
import { type Browser, openBrowser as open } from '../../../runtime/client/browser.js'

export {
  attribute,
  dataIn,
  type Form,
  type Page,
  unescaped,
} from '../../../runtime/client/browser.js'
export type TestBrowser = Browser

type Opening = { readonly baseUrl: string; readonly ca?: string | undefined }
type Running = { teardown(end: () => Promise<void>): void }

/** @param t closes the browser at the end of the test. */
export function openBrowser({ baseUrl, ca }: Opening, t?: Running): TestBrowser {
  const browser = open({ baseUrl, ca, userAgent: 'test browser' })
  t?.teardown(() => browser.close())
  return browser
}

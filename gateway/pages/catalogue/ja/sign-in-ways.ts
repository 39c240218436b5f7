/** Japanese texts of sign-in by phone, wallet and as a guest, and of confirmations. */
import type { signInWays as english } from '../en/sign-in-ways.js'

export const signInWays: Readonly<Record<keyof typeof english, string>> = {
  'footer.links': '{tenant} のリンク',

  'ways.other': '別の方法でログイン',
  'ways.account': 'アカウントに戻る',
  'ways.phone': '電話番号で続行',

  'ways.ethereum': 'Ethereum で続行',

  'ways.guest': 'ゲストとして続行',

  'confirm.lead':
    'ここからログインするのは初めてであるか、誰かがパスワードを試しました。メールアドレスにコードをお送りしました。',
  'confirm.hint': 'メールに記載されたコードです。届くまでに 1 分ほどかかることがあります。',
  'confirm.again': '新しいコードをメールで受け取る',

  'guest.name': 'ゲスト',
  'guest.title': 'アカウントの保持',
  'guest.lead':
    'このアカウントを保持するには、メールアドレスを追加してください。コードをお送りします。',
  'guest.send': 'コードをメールで受け取る',
  'guest.sent': '{email} にコードをお送りしました。届くまでに 1 分ほどかかることがあります。',
  'guest.prove': 'アカウントを保持',
  'guest.again': '別のアドレスを使用するか、新しいコードをリクエスト',
  'guest.taken':
    'このメールアドレスのアカウントをすでにお持ちです。そのアカウントにログインしてください。',
  'guest.section': 'ゲストとして利用中です',
  'guest.section.lead':
    '別のデバイスで再びログインすることはできません。しばらく使用しないと、このアカウントは終了します。',
  'guest.add': 'メールアドレスを追加',

  'wallet.title': 'Ethereum でログイン',
  'wallet.lead':
    'ウォレットでメッセージへの署名を求められます。費用はかからず、トランザクションも送信されません。',
  'wallet.submit': 'ウォレットを接続',
  'wallet.new.title': 'Ethereum アカウントのリンク',
  'wallet.new.lead':
    'リンクすると、このアカウントでログインできるようになります。ウォレットでメッセージへの署名を求められます。費用はかからず、トランザクションも送信されません。',
  'wallet.new.submit': 'ウォレットを接続',
  'wallet.missing':
    'このブラウザに Ethereum ウォレットがありません。インストールするか、別の方法でログインしてください。',
  'wallet.cancelled': 'ウォレットで拒否されました。準備ができたら、もう一度お試しください。',
  'wallet.chain':
    'ウォレットのネットワークはここでは使用できません。ネットワークを切り替えて、もう一度お試しください。',
  'wallet.failed': 'ウォレットでメッセージに署名されませんでした。もう一度お試しください。',
  'wallet.script':
    'ウォレットがこのブラウザで署名するため、Ethereum でのログインには JavaScript が必要です。有効にするか、別の方法でログインしてください。',
  'wallet.wrong': '署名が無効か、メッセージの有効期限が切れています。もう一度お試しください。',
  'wallet.unlinked':
    'この Ethereum アカウントを使用しているアカウントはありません。別の方法でログインしてから、アカウントページでリンクしてください。',
  'wallet.taken':
    'この Ethereum アカウントはすでにリンクされているか、リンクできる数の上限に達しています。',
  'wallet.section': 'Ethereum アカウント',
  'wallet.none': 'Ethereum アカウントはまだありません。',
  'wallet.add': 'Ethereum アカウントをリンク',

  'phone.title': '電話番号でログイン',
  'phone.lead': 'SMS でコードをお送りします。',
  'phone.number': '電話番号',
  'phone.number.hint': '国番号を含めてください (例: +81 3 1234 5678)。',
  'phone.number.invalid': '国番号を含む電話番号を入力してください (例: +81 3 1234 5678)。',
  'phone.number.country': 'この国には SMS を送信できません。',
  'phone.send': 'SMS でコードを受け取る',
  'phone.code.title': 'コードの入力',
  'phone.code.lead':
    'この番号を使用しているアカウントが存在する場合は、SMS をお送りしました。届くまでに 1 分ほどかかることがあります。',
  'phone.code.sent': '{number} にコードをお送りしました。届くまでに 1 分ほどかかることがあります。',
  'phone.code': '6 桁のコード',
  'phone.code.hint': 'SMS に記載されたコードです。',
  'phone.code.wrong':
    'コードが正しくないか、無効になっています。コードを確認するか、新しいコードをリクエストしてください。',
  'phone.prove': '番号を確認',
  'phone.again': '別の番号を使用するか、新しいコードをリクエスト',
  'phone.own.title': '電話番号の追加',
  'phone.own.lead':
    'この番号に SMS で届くコードを使ってログインできます。別のアカウントで使用されている場合は、このアカウントに移ります。',
  'phone.section': 'ログイン用の電話番号',
  'phone.none': '電話番号はまだありません。',
  'phone.add': '電話番号を追加',
  'phone.change': '電話番号を変更',
}

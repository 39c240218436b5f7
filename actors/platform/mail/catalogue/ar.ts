/** Arabic. */
import type { MailCatalogue } from './en.js'

export const ar: MailCatalogue = {
  'mail.greeting': 'مرحبًا،',
  'mail.ignore': 'إذا لم تكن أنت من طلب ذلك، فيمكنك تجاهل هذه الرسالة: لن يتغيّر شيء.',
  'mail.link.once': 'يعمل الرابط مرة واحدة، حتى {time}.',
  'mail.link.copy': 'إذا لم يعمل الزر، فيُرجى نسخ هذا العنوان إلى متصفحك:',
  'mail.sender': 'أُرسلت هذه الرسالة نيابةً عن {tenant}.',

  'sign_in.subject': 'تسجيل الدخول إلى {tenant}',
  'sign_in.lead': 'يريد شخص ما، ويُرجّح أنه أنت، تسجيل الدخول إلى {tenant} بهذا العنوان.',
  'sign_in.code': 'يُرجى إدخال هذا الرمز في الصفحة التي طلبته منها:',
  'sign_in.code.until': 'يعمل الرمز مرة واحدة، حتى {time}. لا تشاركه مع أي شخص.',
  'sign_in.link': 'يُرجى فتح هذا الرابط في المتصفح الذي طلبته منه والتأكيد هناك:',
  'sign_in.button': 'تسجيل الدخول',

  'password_reset.subject': 'تعيين كلمة مرور جديدة في {tenant}',
  'password_reset.lead':
    'نسي شخص ما، ويُرجّح أنه أنت، كلمة المرور في {tenant}. يُرجى اختيار كلمة مرور جديدة هنا:',
  'password_reset.button': 'اختيار كلمة مرور جديدة',

  'password_changed.subject': 'تم تغيير كلمة مرورك',
  'password_changed.lead':
    'تم تغيير كلمة مرور حسابك لدى {tenant} في {time}، وتسجيل خروجك من جميع الأجهزة الأخرى.',
  'password_changed.alarm':
    'إذا لم تكن أنت من فعل ذلك، فيُرجى إعادة تعيين كلمة المرور فورًا وإبلاغ المسؤول عن {tenant}.',

  'account_recovery.subject': 'استعادة حساب لدى {tenant}',
  'account_recovery.lead':
    'أصدر مشغّل الخدمة في {time} رابطًا يعيّن كلمة مرور جديدة للحساب {account} لدى {tenant} ويزيل عوامل التحقق الثانية.',
  'account_recovery.alarm': 'إذا كنت لا تعرف السبب، فتواصل فورًا مع مشغّل الخدمة.',

  'admin_password_reset.subject': 'تمت إعادة تعيين كلمة مرورك في {tenant}',
  'admin_password_reset.lead':
    'أعاد أحد المسؤولين في {tenant} تعيين كلمة مرورك. لم تعد كلمة المرور القديمة صالحة، وتم تسجيل خروجك. يُرجى اختيار كلمة مرور جديدة هنا:',
  'admin_factors_reset.subject': 'تمت إزالة عوامل التحقق الثانية الخاصة بك في {tenant}',
  'admin_factors_reset.lead':
    'أزال أحد المسؤولين في {tenant} في {time} مفاتيح المرور وتطبيق المصادقة ورموز الاسترداد الخاصة بك، وتم تسجيل خروجك. يمكنك إعداد عوامل جديدة عند تسجيل الدخول التالي.',
  'admin_factors_reset.password': 'لم تبقَ أي طريقة أخرى لتسجيل الدخول. يُرجى اختيار كلمة مرور هنا:',
  'admin_reset_refused.subject': 'لم يتغير حسابك لدى {tenant}',
  'admin_reset_refused.lead':
    'حاول أحد المسؤولين في {tenant} في {time} إعادة تعيين كلمة مرور حسابك أو عوامل التحقق الثانية. لم يتغير أي شيء، لأنك تستخدم الحساب في أماكن أخرى أيضًا. يمكنك تغيير كليهما بنفسك في صفحة حسابك.',
  'admin_reset.alarm': 'إذا كنت لا تعرف السبب، فتواصل مع المسؤول عن {tenant}.',

  'invitation.subject': 'وصلتك دعوة إلى {tenant}',
  'invitation.lead': 'وصلتك دعوة إلى {tenant}. يُرجى قبول الدعوة هنا:',
  'invitation.button': 'قبول الدعوة',

  'email_verification.subject': 'تأكيد عنوان بريدك الإلكتروني لدى {tenant}',
  'email_verification.lead': 'يُرجى تأكيد أن هذا هو عنوان بريدك الإلكتروني:',
  'email_verification.button': 'تأكيد العنوان',

  'sign_up.subject': 'تأكيد عنوانك لدى {tenant}',
  'sign_up.lead': 'يُرجى تأكيد عنوانك لإكمال حسابك لدى {tenant}:',
  'sign_up.button': 'إكمال الحساب',

  'sign_up_known.subject': 'لديك حساب بالفعل لدى {tenant}',
  'sign_up_known.lead':
    'حاولت التسجيل لدى {tenant} بهذا العنوان، لكن لديك حساب بالفعل. يُرجى تسجيل الدخول هنا:',
  'sign_up_known.button': 'تسجيل الدخول',

  'confirmation_code.subject': 'رمزك لدى {tenant}',
  'confirmation_code.lead': 'يُرجى إدخال هذا الرمز في الصفحة التي طلبته منها:',

  'text.code': '{code} هو رمزك لدى {tenant}. لا تشاركه مع أي شخص.',
}

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0004_open_tool_calls_by_time'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='toolcall',
            index=models.Index(condition=models.Q(('message_sequence__isnull', False), ('result_sequence__isnull', True)), fields=['session', 'message_sequence'], name='tool_call_unanswered'),
        ),
    ]
